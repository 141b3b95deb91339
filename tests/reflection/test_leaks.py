"""After an ingest no personal datum and no secret stands anywhere: not in a table, the queue, a log or a prompt."""

from __future__ import annotations

import logging

import pytest
from django.db import connection

from hindsight_site.accounts.tenancy import team_transaction
from memories.models import Memory
from reflection import pipeline
from reflection.models import Reflection, Step, Trace

pytestmark = pytest.mark.django_db

# Synthetic, each in a form that masking knows.
PRIVATE = {
    "email": "anna.petrova@mail-example.org",
    "phone": "+49 30 5550 1234",
    "card": "4539 1488 0343 6467",
    "key": "sk-proj-4fQ9mZ1xT7vB2nK8rL5wY3cH6jD0sA",
    "phone_zh": "13812345678",
    "id_zh": "11010519491231002X",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
}
ALL = " ".join(
    [
        f"write to {PRIVATE['email']}, call {PRIVATE['phone']}, card {PRIVATE['card']}, token {PRIVATE['key']},",
        f"手机 {PRIVATE['phone_zh']}，身份证 {PRIVATE['id_zh']}, bearer {PRIVATE['jwt']}",
    ]
)


def needles() -> list[str]:
    """Every private value, as it is and without its spaces."""
    return sorted({value for raw in PRIVATE.values() for value in (raw, raw.replace(" ", ""))})


def ingest(api) -> None:
    """Put the private values into every field that takes free text."""
    steps = [
        {"role": "user", "content": f"Export the invoices; remember that I prefer mail: {ALL}", "note": ALL},
        {"role": "assistant", "kind": "tool_call", "tool": "export", "arguments": {"to": ALL, "nested": [{"x": ALL}]}},
        {"role": "tool", "kind": "tool_result", "tool": "export", "content": f"Error: denied {ALL}", "is_error": True},
        {"role": "assistant", "kind": "tool_call", "tool": "export", "arguments": {"to": "billing"}},
        {"role": "tool", "kind": "tool_result", "tool": "export", "content": f"ok, sent to {ALL}"},
        {"role": "assistant", "content": f"Done, {ALL}"},
    ]  # fmt: skip
    trace = {
        "task": f"Export the invoices. {ALL}",
        "task_type": PRIVATE["email"],
        "session_id": PRIVATE["email"],
        "environment": {"owner": ALL},
        "metadata": {"contact": ALL},
        "unknown": {"deep": [ALL]},
        "steps": steps,
        "outcome": "failed",
        "result": f"Sent to {ALL}",
        "remember": True,
    }
    sent = api.post("/api/v1/traces", trace, headers={"Idempotency-Key": "one"})
    assert sent.status_code == 201, sent.json()
    pipeline.reflect(api.team, sent.json()["reflection"]["id"])
    memory = {
        "content": f"The export goes to {ALL}",
        "kind": "fact",
        "structure": {"subject": "export", "predicate": "goes to", "object": ALL},
        "tags": [PRIVATE["email"][:60]],
        "metadata": {"contact": ALL},
        "environment": {"owner": ALL},
        "actor": PRIVATE["email"],
        "session_id": PRIVATE["phone"],
    }
    written = api.post("/api/v1/memories", memory, headers={"Idempotency-Key": "two"})
    assert written.status_code == 201, written.json()
    plain = api.post(
        "/api/v1/memories", {"content": "Invoices are exported on the first Monday.", "kind": "fact"}
    ).json()
    asked = {"query": f"when are invoices exported? {ALL}", "session_id": PRIVATE["email"], "min_relevance": 0}
    found = api.post("/api/v1/recall", asked)
    assert found.status_code == 200, found.json()
    items = [{"memory": plain["id"], "adopted": True, "success": True, "note": f"told {ALL}"}]
    told = api.post("/api/v1/feedback", {"recall_id": found.json()["recall_id"], "items": items})
    assert told.status_code == 200, (told.json(), found.json()["hits"])
    changed = {"content": f"Invoices are exported on Tuesdays; ask {PRIVATE['email']}.", "reason": ALL}
    assert api.patch(f"/api/v1/memories/{plain['id']}", changed).status_code == 200
    demoted = api.post(f"/api/v1/memories/{plain['id']}/demote", {"reason": "wrong", "note": ALL})
    assert demoted.status_code == 200, demoted.json()


def everything() -> list[tuple[str, str]]:
    """Every row of every table of the schema as text, beside the table's name."""
    rows = []
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        tables = [name for (name,) in cursor.fetchall()]
        for table in tables:
            cursor.execute(f'SELECT row_to_json(t)::text FROM "{table}" t')  # noqa: S608 - names from the catalogue
            rows += [(table, text) for (text,) in cursor.fetchall()]
    assert {"reflection_step", "memories_memory", "django_q_ormq"} <= set(tables)
    return rows


@pytest.mark.parametrize("by_model", [False, True])
def test_nothing_private_is_kept_queued_logged_or_sent(api, settings, model_server, caplog, by_model) -> None:
    if by_model:
        settings.LLM_BASE_URL, settings.LLM_API_KEY = model_server.base_url, "test"
        settings.LLM_MODEL = settings.LLM_MODEL_STRONG = "stub"
    caplog.set_level(logging.DEBUG)
    ingest(api)
    with team_transaction(api.team):
        assert Reflection.objects.of(api.team).get().status in ("stored", "nothing_new")
        assert Memory.objects.of(api.team).count() >= 2
        assert Step.objects.of(api.team).count() == 6
        assert "EMAIL" in Trace.objects.of(api.team).get().task
        kept = everything()
    said = [
        ("log", record.getMessage() + str(record.__dict__))
        for record in caplog.records
        if record.name != "django.db.backends"
    ]
    prompts = [("prompt", str(asked.body)) for asked in model_server.requests]
    assert bool(prompts) == by_model
    leaks = [(where, needle) for where, text in (*kept, *said, *prompts) for needle in needles() if needle in text]
    assert leaks == []
