"""Ids of sessions: kept as sent unless they hold personal data, and then alike everywhere."""

from __future__ import annotations

import logging

import pytest
from django.db import connection
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts.models import AuditEvent, IdempotencyKey
from hindsight_site.accounts.tenancy import team_transaction
from memories import recall
from memories.models import Memory, Recall
from memories.safety import masking
from memories.safety.sessions import STORED, stored_session_id
from reflection.models import Trace
from tests import factories

PERSONAL = "chat with jane.doe@example.com"
SAID = "Jane wants her invoices in March by e-mail."

personal = st.sampled_from(["jane.doe@example.com", "13800138000", "sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12Mn34"])


@given(st.text(max_size=120) | st.builds("{}-{}".format, st.text(max_size=30), personal))
def test_a_stored_id_is_stored_as_it_is(session_id: str) -> None:
    stored = stored_session_id(session_id)
    assert stored_session_id(stored) == stored
    assert bool(STORED.fullmatch(stored)) or stored == session_id
    if masking.find(session_id):
        assert STORED.fullmatch(stored)


@pytest.mark.parametrize("plain", ["", "run-2026-03-31", "s-1", "1f0c7a52-8f4e-6b1a-9d3e-0242ac120002"])
def test_a_plain_id_stays(plain: str) -> None:
    assert stored_session_id(plain) == plain


def test_the_key_is_the_sites() -> None:
    here = stored_session_id(PERSONAL)
    assert here != stored_session_id(PERSONAL + "x")
    with override_settings(SECRET_KEY="another"):
        assert stored_session_id(PERSONAL) != here


@pytest.fixture
def sent(api, db) -> dict[str, str]:
    """One session's memory, trace and recall, each with the personal id, as each was answered."""
    body = {"kind": "fact", "content": SAID, "session_id": PERSONAL, "sequence": 1}
    made = api.post("/api/v1/memories", body, headers={"Idempotency-Key": "once"})
    bulk = {"memories": [{**body, "content": "Another thing that Jane said.", "sequence": 2}]}
    assert api.post("/api/v1/memories/bulk", bulk).status_code == 200
    trace = api.post("/api/v1/traces", {"task": "Write to Jane", "session_id": PERSONAL, "steps": []})
    asked = api.post("/api/v1/recall", {"query": SAID, "session_id": PERSONAL, "min_relevance": 0})
    assert (made.status_code, trace.status_code, asked.status_code) == (201, 201, 200)
    return {"memory": made.json()["session_id"], "trace": trace.json()["id"], "recall": asked.json()["recall_id"]}


def test_it_is_one_fingerprint_everywhere(api, team, sent) -> None:
    stored = stored_session_id(PERSONAL)
    assert STORED.fullmatch(stored)
    assert sent["memory"] == stored
    assert api.get(f"/api/v1/traces/{sent['trace']}").json()["session_id"] == stored
    assert api.get(f"/api/v1/recalls/{sent['recall']}").json()["session_id"] == stored
    with team_transaction(team):
        for model in (Memory, Trace, Recall):
            assert set(model.objects.of(team).values_list("session_id", flat=True)) == {stored}, model


def test_either_form_finds_the_session(api, team, sent) -> None:
    stored = stored_session_id(PERSONAL)
    for form in (PERSONAL, stored):
        rows = api.get("/api/v1/traces", {"session_id": form}).json()["results"]
        assert [row["id"] for row in rows] == [sent["trace"]], form
        with team_transaction(team):
            assert Memory.objects.of(team).filter(session_id=form).count() == 2
            assert Memory.objects.of(team).filter(session_id__in=[form]).count() == 2


def test_working_memory_of_the_session_is_recalled_in_it(api, agent, db) -> None:
    goal = "The goal is to send Jane the March invoices."
    api.post("/api/v1/memories", {"kind": "fact", "tier": "working", "content": goal, "session_id": PERSONAL})
    for form in (PERSONAL, stored_session_id(PERSONAL)):
        found = api.post("/api/v1/recall", {"query": goal, "session_id": form, "min_relevance": 0}).json()
        assert [hit["snippet"] for hit in found["hits"]] == [goal]
    elsewhere = api.post("/api/v1/recall", {"query": goal, "session_id": "s-2", "min_relevance": 0}).json()
    assert elsewhere["hits"] == []


def test_nothing_keeps_the_id_in_clear(api, team, agent, caplog, db) -> None:
    with caplog.at_level(logging.DEBUG):
        body = {"kind": "fact", "content": SAID, "session_id": PERSONAL}
        api.post("/api/v1/memories", body, headers={"Idempotency-Key": "once"})
        api.post("/api/v1/memories", body)  # said again: merged, and what it said is kept
        api.post("/api/v1/traces", {"task": "Write to Jane", "session_id": PERSONAL, "steps": [], "outcome": "failed"})
        api.post("/api/v1/recall", {"query": SAID, "session_id": PERSONAL})
    assert "jane.doe" not in caplog.text
    with team_transaction(team):
        assert IdempotencyKey.objects.of(team).exists()
        assert AuditEvent.objects.of(team).exists()
        with connection.cursor() as cursor:
            for table in connection.introspection.table_names(cursor):
                if table.startswith(("accounts_", "memories_", "reflection_", "django_q_")):
                    cursor.execute(f'SELECT count(*) FROM "{table}" AS row WHERE row::text LIKE %s', ["%jane.doe%"])
                    assert cursor.fetchone()[0] == 0, table


def test_a_question_in_code_is_mapped_too(team, agent, db) -> None:
    with team_transaction(team):
        answer = recall.recall(
            team=team, agent=agent, scopes=[], question=recall.Question(query="anything", session_id=PERSONAL)
        )
        assert Recall.objects.of(team).get(pk=answer.recall_id).session_id == stored_session_id(PERSONAL)
        trace, _ = factories.trace(agent, session_id=PERSONAL)
        assert trace.session_id == stored_session_id(PERSONAL)
