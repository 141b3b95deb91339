"""A trace sent again is no second witness; another trace that shows the same is."""

from __future__ import annotations

import pytest

from hindsight_site.accounts.tenancy import team_transaction
from memories import actions, scopes
from memories.enums import Status
from memories.models import Evidence, Memory
from reflection import pipeline
from reflection.models import Trace
from tests import factories
from tests.memories.judging import PORT_NEW, PORT_OLD, conflict_of, fresh, say

pytestmark = pytest.mark.django_db
STEPS = [
    {"role": "user", "content": "Export the March invoices as CSV."},
    {"role": "assistant", "kind": "tool_call", "tool": "export", "arguments": {"month": "March", "format": "csv"}},
    {
        "role": "tool", "kind": "tool_result", "tool": "export", "is_error": True,
        "content": "Error: month must be given as YYYY-MM, got 'March'",
    },
    {"role": "assistant", "kind": "tool_call", "tool": "export", "arguments": {"month": "2026-03", "format": "csv"}},
    {"role": "tool", "kind": "tool_result", "tool": "export", "content": '{"rows": 412}'},
]  # fmt: skip


def send(client, task: str = "Export the March invoices as CSV", **more) -> Trace:
    """Send a trace as an agent does, and look back at it."""
    body = {"task": task, "outcome": "failed", "steps": STEPS, **more}
    sent = client.post("/api/v1/traces", body)
    assert sent.status_code == 201, sent.json()
    with team_transaction(client.team):
        trace = Trace.objects.of(client.team).get(pk=sent.json()["id"])
        run = trace.reflections.get().pk
    pipeline.reflect(client.team, run)
    return trace


def lesson_of(team) -> Memory:
    return Memory.objects.of(team).get(kind="experience")


def test_a_trace_sent_six_times_supports_once(api, team) -> None:
    first = send(api)
    once = lesson_of(team)
    for number in range(5):
        send(api, session_id=f"another-{number}", metadata={"n": number})
    again = lesson_of(team)
    assert (again.support_count, again.alpha, again.beta) == (1, once.alpha, once.beta)
    assert again.evidence.values("trace_id").distinct().count() == 6, "its evidence is kept"
    assert set(again.evidence.values_list("trace_digest", flat=True)) == {first.digest}


def test_other_traces_with_the_same_error_support_it_each(api, team) -> None:
    for month in ("March", "April", "May"):
        send(api, task=f"Export the {month} invoices as CSV")
    assert lesson_of(team).support_count == 3


def test_a_look_across_takes_repeats_for_one(api, team) -> None:
    failing = STEPS[:3]
    for _ in range(4):
        send(api, steps=failing)
    episode = Memory.objects.of(team).get(kind="task")
    note = factories.memory(api.agent, "The staging cluster is called kestrel.")
    body = {"episodes": [str(pk) for pk in Memory.objects.of(team).values_list("pk", flat=True)]}
    asked = api.post("/api/v1/reflections", body)
    pipeline.reflect(team, asked.json()["id"])
    assert not Memory.objects.of(team).filter(source="consolidation").exists()
    assert not Memory.objects.of(team).filter(tier="semantic").exclude(pk=note.pk).exists()
    assert fresh(episode).support_count == 1


def test_repeats_settle_nothing(agent, team) -> None:
    say(agent, PORT_OLD, by_trace=True)
    new = say(agent, PORT_NEW, by_trace=True)
    with team_transaction(team):
        Evidence.objects.of(team).filter(memory=new).update(trace_digest="f" * 64)
    said = say(agent, PORT_NEW)
    assert said.pk == new.pk
    factory = say(agent, "Nothing to do with it.", by_trace=True)
    with team_transaction(team):
        row = Evidence.objects.of(team).get(memory=factory)
        quote = actions.EvidenceDraft(row.trace_id, row.step_id, 0, row.role, 0, row.end, row.quote, "f" * 64, agent.pk)
    say(agent, PORT_NEW, evidence=(quote,))
    assert conflict_of(new).settled_at is None
    assert fresh(new).support_count == 1
    say(agent, PORT_NEW, by_trace=True)  # a second witness does
    assert conflict_of(new).settled_at is not None


def test_a_digest_tells_what_was_told(api, team) -> None:
    one, same = send(api), send(api, session_id="s-2", result="Done.", outcome="succeeded")
    assert one.digest == same.digest != ""
    others = [
        send(api, task="Export the invoices of March"),
        send(api, steps=STEPS[:-1]),
        send(api, steps=[*STEPS[:1], {**STEPS[1], "arguments": {"month": "March"}}, *STEPS[2:]]),
        send(api, steps=[{**STEPS[0], "role": "system"}, *STEPS[1:]]),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 5


def test_the_same_trace_in_another_team_has_another_digest(api, other_api) -> None:
    assert send(api).digest != send(other_api).digest


def test_a_team_token_is_no_two_agents(team, team_api) -> None:
    """One credential that writes in the name of two agents stays one."""
    bots = [factories.agent(team, slug) for slug in ("bot-a", "bot-b")]
    for bot in bots:
        send(team_api, agent=bot.slug, task=f"Export the March invoices for {bot.slug}")
    refused = _share(team, team_api_without_review(team), bots[0])
    assert (refused.status_code, refused.json()["code"]) == (409, "needs_reviewer")


def test_two_agents_with_tokens_of_their_own_are_two(team) -> None:
    bots = [factories.agent(team, slug) for slug in ("bot-a", "bot-b")]
    for bot in bots:
        send(factories.api_client(team, bot), task=f"Export the March invoices for {bot.slug}")
    assert _share(team, team_api_without_review(team), bots[0]).status_code == 201


def test_a_copy_of_anothers_trace_is_no_second_word(team) -> None:
    bots = [factories.agent(team, slug) for slug in ("bot-a", "bot-b")]
    for bot in bots:
        send(factories.api_client(team, bot))
    assert _share(team, team_api_without_review(team), bots[0]).status_code == 409


def team_api_without_review(team):
    return factories.api_client(team, None, ["memory:read", "memory:write", "trace:write", "reflect"])


def _share(team, client, bot):
    with team_transaction(team):
        mine = Memory.objects.of(team).get(scope=scopes.private_of(team, bot), kind="experience")
        assert mine.status in (Status.ACTIVE, Status.CANDIDATE)
    return client.post(f"/api/v1/memories/{mine.pk}/promote", {"scope": "team"})
