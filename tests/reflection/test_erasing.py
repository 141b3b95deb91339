"""Erasing for good: nothing is left in any column of any table, and what rests on something else stays."""

from __future__ import annotations

import json
import unicodedata
import uuid
from typing import Any

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.enums import ChunkRole, JobKind, JobStatus
from hindsight_site.accounts.jobs import actions as jobs
from hindsight_site.accounts.jobs import files, running
from hindsight_site.accounts.jobs.models import Job, JobChunk
from hindsight_site.accounts.models import Agent, AuditEvent, IdempotencyKey, Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.refusals import Invalid
from memories import actions, scopes
from memories.actions import Draft, EvidenceDraft, FeedbackItem
from memories.enums import Kind, RelationKind, Status
from memories.models import Evidence, Feedback, Memory, MemoryTerms, MemoryVector, Recall, Revision
from reflection.drafts import StepDraft
from reflection.erasing.asking import request_erasure
from reflection.erasing.columns import tenant_tables, text_columns, where_found
from reflection.erasing.needles import ERASED, Needle, compiled, without
from reflection.erasing.preview import preview
from reflection.erasing.targets import Target, target_of
from reflection.models import Reflection, ReviewBatch, ReviewItem, Step, Trace, Verdict
from reflection.tasks import HANDLERS
from tests import factories

pytestmark = pytest.mark.django_db
WORD = "Quillfeather"


def erase(team: Team, kind: str, *values: str, turn: float = running.TURN) -> Job:
    target = target_of(kind, list(values))
    with team_transaction(team):
        job = request_erasure(team=team, by=SYSTEM, target=target, confirmation="erase")
    while running.run(team, job.pk, HANDLERS, turn=turn) == JobStatus.QUEUED:
        pass
    with team_transaction(team):
        return Job.objects.get(pk=job.pk)


def resting_on(agent: Agent, content: str, *traces: Trace) -> Memory:
    """A memory whose evidence is the first step of each trace."""
    with team_transaction(agent.team):
        steps = [trace.steps.order_by("sequence").first() for trace in traces]
        evidence = tuple(
            EvidenceDraft(step.trace_id, step.pk, step.sequence, step.role, 0, 6, step.text[:6]) for step in steps
        )
        draft = Draft(content=content, kind=Kind.FACT, evidence=evidence)
        scope = scopes.private_of(agent.team, agent)
        return actions.remember(team=agent.team, by=SYSTEM, scope=scope, draft=draft, agent=agent).memory


def trace_of(agent: Agent, said: str = "Export the March invoices.", **fields: Any) -> Trace:
    steps = (StepDraft(role="user", content=said), StepDraft(role="assistant", content="Done."))
    return factories.trace(agent, steps=steps, **fields)[0]


def status_of(memory: Memory) -> str:
    with team_transaction(memory.team):
        return Memory.objects.get(pk=memory.pk).status


def rows_with(text: str) -> dict[str, int]:
    """Look in the database itself: every column of every table that has a team, whatever its type."""
    found = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.table_name, c.column_name FROM information_schema.columns c JOIN information_schema.columns t"
            " ON t.table_name = c.table_name AND t.column_name = 'team_id' AND t.table_schema = c.table_schema"
            " WHERE c.table_schema = 'public'"
        )
        for table, column in cursor.fetchall():
            cursor.execute(f'SELECT count(*) FROM "{table}" WHERE "{column}"::text ILIKE %s', [f"%{text}%"])  # noqa: S608
            if count := cursor.fetchone()[0]:
                found[f"{table}.{column}"] = count
    return found


def scatter(team: Team, agent: Agent, alice: Any, api: Any) -> dict[str, Any]:
    """Put the word wherever a team's tables can hold one."""
    trace = trace_of(agent, f"Call {WORD} about the March invoices.", task=f"Ring {WORD}", session_id="s-1")
    derived = resting_on(agent, "The March invoices are settled by telephone.", trace)
    said = factories.memory(agent, f"{WORD} signs the invoices.", metadata={"contact": WORD}, tags=(WORD,), actor=WORD)
    history = factories.memory(agent, f"The approver is {WORD}, second floor.")
    kept = factories.memory(agent, "Invoices go out on Mondays.")
    with team_transaction(team):
        actions.revise(team=team, by=SYSTEM, memory=history, content="The approver sits on the second floor.")
        actions.relate(
            team=team, by=SYSTEM, source=kept, target=history, kind=RelationKind.RELATES_TO, note=f"asked {WORD}"
        )
        actions.demote(team=team, by=SYSTEM, memory=factories.memory(agent, "Ask twice."), reason=f"{WORD} said so")
    headers = {"Idempotency-Key": "k1"}
    api.post("/api/v1/memories", {"kind": "fact", "content": f"Greet {WORD} by name."}, headers=headers)
    found = api.post("/api/v1/recall", {"query": f"who is {WORD}?", "min_relevance": 0, "tags": []}).json()
    with team_transaction(team):
        recall = Recall.objects.get(pk=found["recall_id"])
        item = FeedbackItem(found["hits"][0]["memory"], True, True, note=f"{WORD} was pleased")
        actions.give_feedback(team=team, by=person(alice), recall=recall, items=[item])
        batch = ReviewBatch.objects.create(
            team=team, week="2026-W49", seed="x", opens_at=recall.created_at, closes_at=recall.created_at
        )
        item = ReviewItem.objects.create(
            team=team,
            batch=batch,
            memory=kept,
            memory_revision=1,
            stratum="random",
            inclusion_probability=1,
            position=1,
        )
        Verdict.objects.create(
            team=team, item=item, reviewer=alice, decision="approve", note=f"as {WORD} told me", memory_revision=1
        )
        reflection = Reflection.objects.filter(trace=trace_of(agent, "Another one.")).first()
        Reflection.objects.filter(pk=reflection.pk).update(
            instruction=f"think of {WORD}", rejected=[{"content": f"{WORD} is nice", "reason": "too_vague"}]
        )
        export = jobs.request(team=team, by=SYSTEM, kind=JobKind.EXPORT, arguments={"note": WORD})
        files.put(export, ChunkRole.OUTPUT, 0, WORD.encode())
    return {"trace": trace, "derived": derived, "said": said, "history": history, "kept": kept, "recall": recall}


def test_nothing_is_left_anywhere(team, agent, alice, api) -> None:
    things = scatter(team, agent, alice, api)
    assert len(rows_with(WORD)) > 12, "the word must be everywhere before"
    job = erase(team, "text", WORD.lower())
    assert (job.status, job.result["found_afterwards"]) == (JobStatus.DONE, 0), job.result
    assert rows_with(WORD) == {}
    with team_transaction(team):
        assert where_found(team, [Needle(WORD)]) == {}
        assert not Trace.objects.filter(pk=things["trace"].pk).exists()
        assert not JobChunk.objects.exists()
        assert not IdempotencyKey.objects.exists()
        assert not Revision.objects.filter(memory=things["history"]).exists()
        # The rest of what was there still is.
        assert Recall.objects.get(pk=things["recall"].pk).query == ERASED
        assert Feedback.objects.get().note == ERASED
        for gone in (things["said"], things["derived"]):
            assert not MemoryTerms.objects.filter(memory_id=gone.pk).exists()
            assert not MemoryVector.objects.filter(memory_id=gone.pk).exists()
    assert status_of(things["said"]) == status_of(things["derived"]) == Status.FORGOTTEN
    assert status_of(things["kept"]) == status_of(things["history"]) == Status.ACTIVE


def test_the_audit_tells_that_it_happened_but_not_what(team, agent, alice) -> None:
    factories.memory(agent, f"{WORD} signs the invoices.")
    erase(team, "text", WORD)
    with team_transaction(team):
        event = AuditEvent.objects.get(verb="data.erased")
        same = target_of("text", [WORD.upper()])
    assert event.detail["memories"] == 1
    assert event.detail["fingerprint"] == same.fingerprint
    assert WORD.lower() not in str(AuditEvent.objects.values()).lower()


def test_somebody_may_erase_their_own_name(team, agent, alice) -> None:
    with team_transaction(team):
        actions.remember(
            team=team,
            by=person(alice),
            scope=scopes.private_of(team, agent),
            draft=Draft(content="Be kind.", kind="fact"),
        )
        target = target_of("person", [alice.email])
        job = request_erasure(team=team, by=person(alice), target=target, confirmation="erase", person=alice)
    running.run(team, job.pk, HANDLERS)
    assert rows_with(alice.email) == {}
    with team_transaction(team):
        assert AuditEvent.objects.filter(actor_id=str(alice.pk), actor_label=ERASED).exists()


def test_an_export_at_work_is_called_off(team, agent) -> None:
    with team_transaction(team):
        export = jobs.request(team=team, by=SYSTEM, kind=JobKind.EXPORT)
    erase(team, "text", WORD)
    with team_transaction(team):
        assert Job.objects.get(pk=export.pk).status == JobStatus.CANCELLED


def test_the_audit_still_cannot_be_rewritten_by_others(team, agent) -> None:
    from django.db import DatabaseError, transaction

    factories.memory(agent)
    erase(team, "text", WORD)
    with team_transaction(team), pytest.raises(DatabaseError), transaction.atomic():
        AuditEvent.objects.update(verb="x")


def test_what_rests_on_other_traces_too_stays_without_that_evidence(team, agent) -> None:
    going, staying = trace_of(agent, f"Ask {WORD}.", task="One"), trace_of(agent, "Ask somebody.", task="Two")
    both = resting_on(agent, "The March invoices are settled by telephone.", going, staying)
    alone = resting_on(agent, "Reminders are sent by letter.", going)
    with team_transaction(team):
        Memory.objects.filter(pk=both.pk).update(support_count=2)
    assert erase(team, "trace", str(going.pk)).result["erased"]["quotes"] == 1
    assert (status_of(both), status_of(alone)) == (Status.ACTIVE, Status.FORGOTTEN)
    with team_transaction(team):
        assert {row.trace_id for row in Evidence.objects.filter(memory=both)} == {staying.pk}
        assert Memory.objects.get(pk=both.pk).support_count == 1
        assert Trace.objects.filter(pk=staying.pk).exists()


def test_what_was_distilled_solely_from_it_goes_to_the_last(team, agent) -> None:
    trace, other = trace_of(agent, "One."), trace_of(agent, "Two.")
    first = resting_on(agent, "Reminders are sent by letter.", trace)
    second, third = factories.memory(agent, "Letters beat mails."), factories.memory(agent, "Paper is best.")
    mixed, elsewhere = factories.memory(agent, "Ask before sending."), resting_on(agent, "Asking is polite.", other)
    with team_transaction(team):
        for source, target in ((second, first), (third, second), (mixed, second), (mixed, elsewhere)):
            actions.relate(team=team, by=SYSTEM, source=source, target=target, kind=RelationKind.DISTILLED_FROM)
    erase(team, "trace", str(trace.pk))
    assert [status_of(m) for m in (first, second, third)] == [Status.FORGOTTEN] * 3
    assert [status_of(m) for m in (mixed, elsewhere)] == [Status.ACTIVE] * 2


def test_an_agent(team, agent, api) -> None:
    spare = factories.agent(team, "spare")
    trace, theirs = trace_of(agent, "One."), trace_of(spare, "Two.")
    mine, both = resting_on(agent, "Reminders are sent by letter.", trace), resting_on(spare, "Be kind.", theirs, trace)
    shared = api.post("/api/v1/memories", {"kind": "fact", "content": "Ask first.", "scope": "team"}).json()
    asked = api.post("/api/v1/recall", {"query": "reminders", "session_id": "s-9"}).json()["recall_id"]
    job = erase(team, "agent", "coder")
    assert job.result["found_afterwards"] == 0
    with team_transaction(team):
        assert not Trace.objects.filter(agent=agent).exists()
        assert Trace.objects.filter(agent=spare).exists()
        recall = Recall.objects.get(pk=asked)
        assert (recall.query, recall.session_id) == ("", "")
        assert Memory.objects.get(pk=shared["id"]).status == Status.FORGOTTEN
        assert Agent.objects.filter(slug="coder").exists(), "the agent may go on; what it knew is gone"
    assert (status_of(mine), status_of(both)) == (Status.FORGOTTEN, Status.ACTIVE)


def test_a_session(team, agent, api) -> None:
    body = {"kind": "fact", "content": "The customer wants blue.", "session_id": "call-4711"}
    said = api.post("/api/v1/memories", body).json()
    trace = trace_of(agent, "One.", session_id="call-4711")
    assert erase(team, "session", "call-4711").result["found_afterwards"] == 0
    assert rows_with("call-4711") == {}
    with team_transaction(team):
        assert Memory.objects.get(pk=said["id"]).status == Status.FORGOTTEN
        assert not Trace.objects.filter(pk=trace.pk).exists()


def test_a_session_named_by_an_ordinary_word(team, agent, api) -> None:
    """Its id is looked for where ids stand: the word means something else everywhere else."""
    body = {"kind": "fact", "content": "The customer wants blue.", "session_id": "rollout"}
    said = api.post("/api/v1/memories", body, headers={"Idempotency-Key": "one"}).json()
    question = {"query": "which colour?", "session_id": "rollout"}
    asked = api.post("/api/v1/recall", question).json()["recall_id"]
    used = {"recall_id": asked, "success": True}
    assert api.post("/api/v1/feedback", used, headers={"Idempotency-Key": "three"}).status_code == 200
    api.post("/api/v1/recall", {"query": "rollout plan", "session_id": "s-2"})
    elsewhere = {"kind": "fact", "content": "Every rollout is announced.", "session_id": "s-2"}
    api.post("/api/v1/memories", elsewhere, headers={"Idempotency-Key": "two"})
    trace = trace_of(agent, "One.", session_id="rollout")
    elsewhere = trace_of(agent, "Start the rollout.", session_id="s-2", task="A rollout")
    other = resting_on(agent, "A rollout needs two approvals.", elsewhere)
    with team_transaction(team):
        actions.revise(team=team, by=SYSTEM, memory=other, content="A rollout needs three approvals.")
        told = preview(team, target_of("session", ["rollout"]))
    assert told.deleted == {"memories": 1, "traces": 1, "steps": 2, "stored answers": 2}
    assert told.cut == {"receipts": 1}
    result = erase(team, "session", "rollout").result
    assert result["found_afterwards"] == 0
    assert result["erased"] == {"memories": 1, "traces": 1, "receipts": 1, "stored_answers": 1}
    with team_transaction(team):
        assert Memory.objects.get(pk=said["id"]).status == Status.FORGOTTEN
        assert not Trace.objects.filter(pk=trace.pk).exists()
        assert Recall.objects.get(pk=asked).query == ""
        assert IdempotencyKey.objects.get().key == "two"
        assert Trace.objects.get(pk=elsewhere.pk).task == "A rollout"
        assert Recall.objects.exclude(pk=asked).get().query == "rollout plan"
        assert Revision.objects.get().content == "A rollout needs two approvals."
        assert Evidence.objects.get(memory=other).quote == "Start "
        assert Memory.objects.get(pk=other.pk).content == "A rollout needs three approvals."


def test_a_memory_of_the_session_that_others_stand_behind_is_only_taken_off_it(team, agent) -> None:
    mine, theirs = trace_of(agent, "One.", session_id="rollout"), trace_of(agent, "Two.")
    both = resting_on(agent, "Ask before sending.", mine, theirs)
    with team_transaction(team):
        Memory.objects.filter(pk=both.pk).update(session_id="rollout")
        assert preview(team, target_of("session", ["rollout"])).cut["memories taken off the session"] == 1
    assert erase(team, "session", "rollout").result["found_afterwards"] == 0
    with team_transaction(team):
        kept = Memory.objects.get(pk=both.pk)
        assert (kept.status, kept.session_id) == (Status.ACTIVE, "")


def test_a_session_whose_id_is_kept_as_a_fingerprint(team, agent, api) -> None:
    body = {"kind": "fact", "content": "The customer wants blue.", "session_id": "jane.roe@example.com"}
    said = api.post("/api/v1/memories", body, headers={"Idempotency-Key": "one"}).json()
    assert erase(team, "session", "jane.roe@example.com").result["found_afterwards"] == 0
    with team_transaction(team):
        assert Memory.objects.get(pk=said["id"]).status == Status.FORGOTTEN


def test_a_shared_copy_that_another_agent_said_too_outlives_the_agent(team, agent, bob) -> None:
    spare, advice = factories.agent(team, "spare"), "Run the database migrations before the integration tests start"
    mine = resting_on(agent, f"{advice}.", trace_of(agent, "One."))
    with team_transaction(team):
        shared = scopes.team_scope(team)
        origin = Memory.objects.select_related("scope", "agent", "team").get(pk=mine.pk)
        copy = actions.promote(team=team, by=person(bob), memory=origin, scope=shared)
        draft = Draft(content=f"{advice}, always.", kind=Kind.FACT)
        into = actions.remember(team=team, by=SYSTEM, scope=shared, draft=draft, agent=spare)
    assert (into.merged, into.memory.pk) == (True, copy.pk)
    assert erase(team, "agent", "coder").result["found_afterwards"] == 0
    assert (status_of(mine), status_of(copy)) == (Status.FORGOTTEN, Status.ACTIVE)
    assert erase(team, "agent", "spare").result["found_afterwards"] == 0


def test_a_person_is_found_as_a_whole_word(team, agent) -> None:
    ann, plan, zh = (
        factories.memory(agent, text)
        for text in ("Ann prefers tea.", "Planning needs an annual budget.", "请联系王小明处理发票。")
    )
    erase(team, "person", "Ann", "王小明")
    assert [status_of(m) for m in (ann, plan, zh)] == [Status.FORGOTTEN, Status.ACTIVE, Status.FORGOTTEN]


def test_another_team_keeps_its_own(team, agent, other_team, other_agent) -> None:
    factories.memory(agent, f"{WORD} signs.")
    theirs = factories.memory(other_agent, f"{WORD} signs.")
    erase(team, "text", WORD)
    assert status_of(theirs) == Status.ACTIVE


def test_an_interrupted_erasure_goes_on(team, agent) -> None:
    trace = trace_of(agent, f"Call {WORD} about the March invoices.")
    first = resting_on(agent, "The March invoices are settled by telephone.", trace)
    second = factories.memory(agent, "Telephones are quick.")
    factories.memory(agent, f"{WORD} signs the invoices.")
    with team_transaction(team):
        actions.relate(team=team, by=SYSTEM, source=second, target=first, kind=RelationKind.DISTILLED_FROM)
    job = erase(team, "text", WORD, turn=0)  # whatever gets on is a turn of its own
    assert job.fence > 3
    assert job.result["erased"]["memories"] == 3
    assert job.result["found_afterwards"] == 0
    assert rows_with(WORD) == {}


def test_nothing_of_it_is_in_the_queue_or_the_job(team, agent) -> None:
    target = target_of("text", [WORD])
    with team_transaction(team):
        job = request_erasure(team=team, by=SYSTEM, target=target, confirmation="erase")
    assert rows_with(WORD) == {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_q_ormq WHERE payload LIKE %s", [f"%{WORD}%"])
        assert cursor.fetchone()[0] == 0
    assert job.arguments == {"target": "text", "fingerprint": target.fingerprint}


def test_every_table_of_a_team_is_looked_through() -> None:
    names = {model.__name__ for model in tenant_tables()}
    assert {"Memory", "Trace", "Step", "Recall", "AuditEvent", "Job", "Verdict", "IdempotencyKey"} <= names
    assert {"content", "structure", "tags", "metadata", "actor", "session_id"} <= set(text_columns(Memory))
    assert {"content", "arguments", "extra", "tool"} <= set(text_columns(Step))
    assert {"detail", "actor_label"} <= set(text_columns(AuditEvent))


# --- Before it --------------------------------------------------------------------------------------


def test_the_preview_counts_what_goes(team, agent, alice, api) -> None:
    things = scatter(team, agent, alice, api)
    with team_transaction(team):
        told = preview(team, target_of("text", [WORD]))
    job = erase(team, "text", WORD)
    assert told.deleted["memories"] == job.result["erased"]["memories"] == 3
    assert (told.deleted["traces"], told.deleted["steps"], told.deleted["export files"]) == (1, 2, 1)
    assert (told.deleted["revisions"], "revisions" in told.cut) == (1, False), "they are not rewritten"
    assert told.cut["recalls"] == told.cut["feedback"] == told.cut["verdicts"] == 1
    assert {example.id for example in told.examples} >= {str(things["said"].pk), str(things["trace"].pk)}


def test_the_word_must_be_typed(team, agent) -> None:
    with team_transaction(team), pytest.raises(Invalid):
        request_erasure(team=team, by=SYSTEM, target=target_of("text", [WORD]), confirmation="yes")
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("kind", "values"),
    [("text", ["ab"]), ("text", []), ("person", ["  "]), ("text", ["one", "two"]), ("trace", ["x"]), ("all", ["x"]),
     ("person", [f"name {n}" for n in range(21)]), ("text", ["x" * 501]), ("text", ["... ..."])],
)  # fmt: skip
def test_too_wide_or_odd_targets_are_refused(kind, values) -> None:
    with pytest.raises(Invalid):
        target_of(kind, values)


def test_over_the_api(team, agent, team_api, api) -> None:
    memory = factories.memory(agent, f"{WORD} signs the invoices.")
    body = {"target": "text", "values": [WORD]}
    assert api.post("/api/v1/erasures/preview", body).json()["code"] == "team_token_needed"
    told = team_api.post("/api/v1/erasures/preview", body).json()
    assert told["deleted"] == {"memories": 1}
    assert [example["id"] for example in told["examples"]] == [str(memory.pk)]
    assert team_api.post("/api/v1/erasures", {**body, "confirmation": "no"}).json()["code"] == "not_confirmed"
    answer = team_api.post("/api/v1/erasures", {**body, "confirmation": "erase"})
    assert answer.status_code == 202
    assert answer["Location"] == f"/api/v1/jobs/{answer.json()['id']}"
    assert WORD not in answer.content.decode()
    missing = team_api.post("/api/v1/erasures/preview", {"target": "agent", "values": ["nobody"]})
    assert (missing.status_code, missing.json()["code"]) == (404, "agent_not_found")


def test_the_page_shows_first_and_asks_for_a_word(team, agent, alice, bob, browse) -> None:
    memory = factories.memory(agent, f"{WORD} signs the invoices.")
    assert browse(bob).get("/erase/").status_code == 403
    assert browse(bob).post("/erase/", {"target": "text", "values": WORD, "confirmation": "erase"}).status_code == 403
    page = browse(alice)
    shown = page.post("/erase/", {"target": "text", "values": WORD}).content.decode()
    assert f"/memories/{memory.pk}/" in shown
    assert "deleted" in shown
    refused = page.post("/erase/", {"target": "text", "values": WORD, "confirmation": "yes"})
    assert refused.status_code == 422
    assert "Type erase to confirm" in refused.content.decode()
    begun = page.post("/erase/", {"target": "text", "values": WORD, "confirmation": " Erase "})
    job = Job.objects.get()
    assert begun["Location"] == f"/jobs/{job.pk}/"
    running.run(team, job.pk, HANDLERS)
    told = page.get(begun["Location"]).content.decode()
    assert "<dt>Found afterwards</dt><dd>0</dd>" in told
    assert WORD not in told


# --- Pure -------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn")), min_size=1, max_size=12).filter(
    lambda text: any(c.isalnum() for c in text) and text == unicodedata.normalize("NFC", " ".join(text.split()))
)


@settings(deadline=None)  # a new pattern each time
def as_text(value: Any) -> str:
    """A value with its characters as they are: `str` would escape some of them into letters."""
    return json.dumps(value, ensure_ascii=False)


@given(TEXT, TEXT, TEXT)
def test_a_needle_is_found_and_cut(text, before, after) -> None:
    pattern = compiled([Needle(text)])
    value = {"a": [f"{before}({text}){after}", {"b": text}], text: 1, "n": 3, "none": None}
    middle = f"({text})"
    assert pattern.search(before + middle + after)
    told = as_text(without(value, pattern))
    frame = as_text({"a": ["", {"b": ""}], "": "", "n": "", "none": None})
    assert not pattern.search(told.replace(ERASED, "")) or pattern.search(frame)


@pytest.mark.parametrize(
    ("needle", "text", "found"),
    [
        (Needle("Ann", True), "Hello Ann!", True), (Needle("Ann", True), "planning", False),
        (Needle("Ann", True), "\\nAnn", True), (Needle("an@x.test", True), "mail an@x.test.", True),
        (Needle("a b"), "A\n  B", True), (Needle("a b"), 'x a\\nb', True), (Needle('say "hi"'), 'say \\"hi\\"', True),
        (Needle("c:\\x"), "c:\\\\x", True), (Needle("a.c"), "abc", False), (Needle("王明", True), "找王明吧", True),
        (Needle("über", True), "Überall", False), (Needle("Jane Doe", True), "Jane\u200b Doe", True),
        (Needle("Jane Doe", True), "J\u00adane \u200bDo\u2060e", True), (Needle("Jane Doe"), "Ｊａｎｅ Ｄｏｅ", True),
        (Needle("Ｊａｎｅ Ｄｏｅ", True), "jane doe", True), (Needle("a1@x.test", True), "Ａ１＠ｘ．ｔｅｓｔ", True),
        (Needle("Jane\u200b Doe"), "Jane Doe", True), (Needle("Ann", True), "P\u200blanning", False),
    ],
)  # fmt: skip
def test_what_a_needle_finds_in_python_and_in_the_database(needle, text, found) -> None:
    assert bool(compiled([needle]).search(text)) is found
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s ~* %s", [text, needle.pattern])
        assert cursor.fetchone()[0] is found


def test_fingerprints_do_not_tell(settings) -> None:
    target = Target("text", (WORD,))
    first = target.fingerprint
    assert uuid.UUID(first)
    settings.SECRET_KEY = "another"
    assert target.fingerprint != first
