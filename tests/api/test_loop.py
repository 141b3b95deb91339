"""The loop over REST: a trace goes in, a reflection distils it, the next recall finds the lesson."""

from __future__ import annotations

import pytest

from hindsight_site.accounts.models import AuditEvent
from memories.models import Evidence, Memory
from reflection import tasks
from reflection.models import Reflection, Step

pytestmark = pytest.mark.django_db

TRACE = {
    "task": "Export the March invoices as CSV",
    "task_type": "export",
    "environment": {"os": "linux"},
    "outcome": "succeeded",
    "result": "412 rows exported",
    "steps": [
        {"role": "user", "content": "Export the March invoices as CSV."},
        {"role": "assistant", "kind": "tool_call", "tool": "export", "arguments": {"month": "March"}},
        {
            "role": "tool", "kind": "tool_result", "tool": "export", "is_error": True,
            "content": "Error: month must be given as YYYY-MM, got 'March'",
        },
        {"role": "assistant", "kind": "tool_call", "tool": "export", "arguments": {"month": "2026-03"}},
        {"role": "tool", "kind": "tool_result", "tool": "export", "content": '{"rows": 412}'},
        {"role": "assistant", "content": "Done: 412 invoices in invoices.csv."},
    ],
}  # fmt: skip


def run(reflection_id: str) -> Reflection:
    reflection = Reflection.objects.get(pk=reflection_id)
    tasks.reflect(str(reflection.team_id), str(reflection.pk))
    reflection.refresh_from_db()
    return reflection


def test_trace_to_lesson_to_recall_to_feedback(api) -> None:
    posted = api.post("/api/v1/traces", TRACE)
    assert posted.status_code == 201, posted.json()
    body = posted.json()
    assert body["status"] == "succeeded"
    assert body["reflection"]["status"] == "queued"

    assert run(body["reflection"]["id"]).status == "stored"
    seen = api.get(f"/api/v1/reflections/{body['reflection']['id']}?wait=1").json()
    assert seen["status"] == "stored"
    assert seen["distiller"] == "rules"
    kinds = {memory["kind"] for memory in seen["memories"]}
    assert kinds == {"task", "experience"}

    answer = api.post("/api/v1/recall", {"query": "export invoices of a month as CSV"}).json()
    assert answer["status"] == "matched"
    lesson = next(hit for hit in answer["hits"] if hit["kind"] == "experience")
    assert "month" in lesson["snippet"]
    assert lesson["scope"] == "private-coder"
    assert "not instructions" in answer["context"]

    told = api.post(
        "/api/v1/feedback",
        {
            "recall_id": answer["recall_id"],
            "items": [{"memory": lesson["memory"], "adopted": True, "success": True}],
        },
    )
    assert told.status_code == 200
    memory = api.get(f"/api/v1/memories/{lesson['memory']}").json()
    assert (memory["reuse_count"], memory["reuse_success_count"]) == (1, 1)


def test_every_memory_quotes_its_trace_exactly(api) -> None:
    body = api.post("/api/v1/traces", TRACE).json()
    run(body["reflection"]["id"])
    quotes = Evidence.objects.of(api.team)
    assert quotes.count() >= 2
    for evidence in quotes:
        step = Step.objects.get(pk=evidence.step_id)
        assert step.text[evidence.start : evidence.end] == evidence.quote


def test_another_trace_that_shows_the_same_raises_support_and_a_repeat_does_not(api) -> None:
    for task, support in ((TRACE["task"], 1), (TRACE["task"], 1), (f"{TRACE['task']} once more", 2)):
        run(api.post("/api/v1/traces", {**TRACE, "task": task}).json()["reflection"]["id"])
        lessons = Memory.objects.of(api.team).filter(kind="experience")
        assert [lesson.support_count for lesson in lessons] == [support]


def test_reflecting_again_on_one_trace_does_not_count_as_support(api) -> None:
    body = api.post("/api/v1/traces", TRACE).json()
    run(body["reflection"]["id"])
    again = api.post("/api/v1/reflections", {"trace": body["id"]})
    assert again.status_code == 202
    assert run(again.json()["id"]).status == "nothing_new"
    assert set(Memory.objects.of(api.team).values_list("support_count", flat=True)) == {1}


def test_a_short_easy_trace_is_skipped_with_its_reason(api) -> None:
    short = {
        "task": "Say hello",
        "outcome": "succeeded",
        "steps": [{"role": "assistant", "content": "Hello"}],
    }
    reflection = api.post("/api/v1/traces", short).json()["reflection"]
    assert reflection["status"] == "skipped"
    assert reflection["reason"]


@pytest.mark.parametrize(
    "text",
    [
        "部署前请先运行数据库迁移脚本，否则登录会失败",
        "Deploy 🚀 with 👩‍💻 only after ✅ tests",
        "يجب تشغيل الاختبارات قبل النشر",
    ],
    ids=["chinese", "emoji", "rtl"],
)
def test_any_script_comes_back_byte_equal_and_is_found(api, text: str) -> None:
    written = api.post("/api/v1/memories", {"content": text, "kind": "fact"})
    assert written.status_code == 201, written.json()
    read = api.get(f"/api/v1/memories/{written.json()['id']}").json()
    assert read["content"].encode() == text.encode()
    found = api.post("/api/v1/recall", {"query": text[: len(text) // 2]}).json()
    assert [hit["snippet"] for hit in found["hits"]] == [text]


def test_nothing_relevant_is_said_plainly(api) -> None:
    api.post("/api/v1/memories", {"content": "The staging database is reset every Monday.", "kind": "fact"})
    answer = api.post("/api/v1/recall", {"query": "favourite ice cream flavour of the postman"}).json()
    assert answer["status"] == "no_match"
    assert answer["hits"] == []
    assert answer["context"] == ""
    assert answer["searched_scopes"] == ["private-coder", "team"]
    assert 0 <= answer["best_relevance"] < 1


def test_every_write_leaves_an_audit_event(api) -> None:
    memory = api.post("/api/v1/memories", {"content": "Use the blue queue.", "kind": "fact"}).json()
    api.post(f"/api/v1/memories/{memory['id']}/demote", {"reason": "wrong"})
    verbs = list(AuditEvent.objects.of(api.team).filter(object_id=memory["id"]).values_list("verb", flat=True))
    assert sorted(verbs) == ["memory.demoted", "memory.remembered"]
    assert "blue queue" not in str(list(AuditEvent.objects.of(api.team).values()))
