"""Looking across episodes: what repeats in independent traces is proposed, cites all, and nothing is deleted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts.tenancy import team_transaction
from memories.models import Memory, Relation
from reflection import pipeline
from reflection.consolidation import patterns, weekly
from reflection.consolidation.patterns import Episode
from reflection.drafts import StepDraft
from reflection.models import Reflection
from tests import factories

DENIED = "Error: quota project is not set for this account"


def episode(number: int, *failures: tuple[str, str], trace: str = "", zh: bool = False) -> Episode:
    """An episode of a trace of its own, which tells of failures as (tool, error)."""
    steps = [
        {"step": f"第 {at} 步（{tool}）" if zh else f"step {at} ({tool})", "reason": error}
        for at, (tool, error) in enumerate(failures)
    ]
    told = " ".join(f"{step['step']} “{step['reason']}”" for step in steps)
    content = f"任务失败：导出三月的全部发票给财务。{told}" if zh else f"Failed: export the invoices. {told}"
    return Episode(number, "task", content, {"failure_steps": steps}, frozenset({trace or f"t{number}"}))


class TestPatterns:
    def test_an_error_that_repeats_becomes_one_lesson_with_its_count(self) -> None:
        episodes = [episode(n, ("deploy", "quota project 1234 is not set")) for n in range(5)]
        (lesson,) = patterns.distil(episodes).candidates
        assert "5 separate tasks" in lesson.content
        assert lesson.structure["outcome"]["metrics"] == {"tasks": 5, "episodes_looked_at": 5}
        assert {quote.step for quote in lesson.quotes} == set(range(5))
        for quote in lesson.quotes:
            assert episodes[quote.step].content[quote.start : quote.end] == quote.text

    def test_numbers_and_quoted_values_do_not_make_another_error(self) -> None:
        one = episode(0, ("find", "no user “anna” with id 17"))
        other = episode(1, ("find", "no user “bert” with id 4711"))
        assert len(patterns.distil([one, other]).candidates) == 1

    def test_one_trace_told_twice_repeats_nothing(self) -> None:
        told = [episode(n, ("deploy", "quota is not set"), trace="same") for n in range(3)]
        assert patterns.distil(told).candidates == ()

    @pytest.mark.parametrize(
        ("tool", "error"),
        [
            ("fetch", "503 Service Unavailable (transient)"),
            ("fetch", "request timed out after 30 s"),
            ("deploy", "command not found: kubectl"),
            ("deploy", "most likely: it stated findings with no tool result behind them"),
        ],
    )
    def test_what_passes_or_was_only_supposed_is_no_pattern(self, tool, error) -> None:
        assert patterns.distil([episode(n, (tool, error)) for n in range(6)]).candidates == ()

    def test_what_a_lesson_explains_is_not_told_again(self) -> None:
        lesson = Episode(
            2, "experience", "When deploy answers “quota project is not set”, pass --project.", {}, frozenset({"t9"})
        )
        told = [episode(n, ("deploy", "quota project is not set")) for n in range(2)]
        assert patterns.distil([*told, lesson]).candidates == ()
        assert len(patterns.distil(told).candidates) == 1

    def test_chinese_episodes_get_a_chinese_lesson(self) -> None:
        (lesson,) = patterns.distil([episode(n, ("导出", "缺少必填参数：月份"), zh=True) for n in range(3)]).candidates
        assert "3 个独立任务" in lesson.content
        assert "缺少必填参数" in lesson.content

    @given(
        st.lists(
            st.tuples(st.sampled_from(["deploy", "fetch", "导出"]), st.text(max_size=60), st.sampled_from("abc")),
            max_size=8,
        )
    )
    def test_every_lesson_quotes_two_traces_word_for_word(self, told) -> None:
        episodes = [episode(n, (tool, error), trace=trace) for n, (tool, error, trace) in enumerate(told)]
        for lesson in patterns.distil(episodes).candidates:
            assert len({trace for quote in lesson.quotes for trace in episodes[quote.step].traces}) >= 2
            for quote in lesson.quotes:
                assert episodes[quote.step].content[quote.start : quote.end] == quote.text


def denied() -> tuple[StepDraft, ...]:
    """A task that fails on an error nothing got past."""
    return (
        StepDraft(role="user", content="Deploy the billing service to staging."),
        StepDraft(role="assistant", kind="tool_call", tool="deploy", arguments={"service": "billing"}),
        StepDraft(role="tool", kind="tool_result", tool="deploy", is_error=True, content=DENIED),
        StepDraft(role="assistant", content="I could not deploy: the project is not set."),
    )


def episodes_of(agent, times: int) -> list[Memory]:
    """The episodes of failed tasks, each of a trace of its own."""
    for number in range(times):
        _, reflection = factories.trace(
            agent, outcome="failed", task=f"Deploy service {number} to staging and say when it is up", steps=denied()
        )
        pipeline.reflect(agent.team, reflection.pk)
    return list(Memory.objects.of(agent.team).filter(kind="task").order_by("created_at"))


def look(api, ids, **more) -> Reflection:
    asked = api.post("/api/v1/reflections", {"episodes": [str(pk) for pk in ids], **more})
    assert asked.status_code == 202, asked.json()
    assert asked["Location"] == f"/api/v1/reflections/{asked.json()['id']}"
    pipeline.reflect(api.team, asked.json()["id"])
    return Reflection.objects.get(pk=asked.json()["id"])


@pytest.mark.django_db
class TestOnRequest:
    def test_a_repeated_failure_is_proposed_once_and_cites_every_episode(self, api, agent) -> None:
        episodes = episodes_of(agent, 3)
        before = Memory.objects.of(agent.team).count()
        done = look(api, [episode.pk for episode in episodes], instruction="What stops deployments?")
        assert (done.status, done.distiller, done.rejected) == ("stored", "rules", [])
        proposed = Memory.objects.of(agent.team).get(source="consolidation")
        assert (proposed.status, proposed.tier, proposed.kind) == ("candidate", "semantic", "experience")
        assert (proposed.support_count, proposed.needs_review, proposed.trust) == (3, True, "agent")
        assert "quota project is not set" in proposed.content
        edges = Relation.objects.of(agent.team).filter(source=proposed, kind="distilled_from")
        assert {edge.target_id for edge in edges} == {episode.pk for episode in episodes}
        assert set(proposed.evidence.values_list("trace_id", flat=True)) == {
            row.trace_id for episode in episodes for row in episode.evidence.all()
        }
        assert Memory.objects.of(agent.team).count() == before + 1, "nothing is deleted"

    def test_looking_again_confirms_instead_of_repeating(self, api, agent) -> None:
        ids = [episode.pk for episode in episodes_of(agent, 2)]
        look(api, ids)
        again = look(api, ids)
        assert again.status == "nothing_new"
        assert Memory.objects.of(agent.team).get(source="consolidation").support_count == 2

    def test_a_lesson_that_two_traces_show_becomes_semantic(self, api, agent) -> None:
        for task in ("Export the March invoices as CSV", "Export the invoices of the spring for the tax office"):
            _, reflection = factories.trace(agent, task=task)
            pipeline.reflect(agent.team, reflection.pk)
        lesson = Memory.objects.of(agent.team).get(kind="experience")
        assert (lesson.tier, lesson.support_count) == ("episodic", 2)
        other = Memory.objects.of(agent.team).filter(kind="task").first()
        look(api, [lesson.pk, other.pk])
        lesson.refresh_from_db()
        assert lesson.tier == "semantic"

    def test_one_trace_is_not_enough(self, api, agent) -> None:
        _, reflection = factories.trace(agent, outcome="failed", steps=denied())
        pipeline.reflect(agent.team, reflection.pk)
        (only,) = Memory.objects.of(agent.team).filter(kind="task")
        note = factories.memory(agent, "The staging cluster is called kestrel.")
        assert look(api, [only.pk, note.pk]).status == "nothing_new"

    @pytest.mark.parametrize(
        ("body", "status", "field"),
        [
            ({}, 422, "trace"),
            ({"episodes": []}, 422, "episodes"),
            ({"episodes": ["nonsense", "x"]}, 422, "episodes.0"),
            ({"instruction": "x"}, 422, "trace"),
        ],
    )
    def test_a_bad_request_is_refused_clearly(self, api, body, status, field) -> None:
        refused = api.post("/api/v1/reflections", body)
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (status, field), refused.json()

    def test_another_teams_memories_do_not_exist(self, api, agent, other_api) -> None:
        ids = [str(episode.pk) for episode in episodes_of(agent, 2)]
        refused = other_api.post("/api/v1/reflections", {"episodes": ids})
        assert (refused.status_code, refused.json()["code"]) == (404, "memory_not_found")
        stranger = factories.api_client(agent.team, factories.agent(agent.team, "stranger"))
        assert stranger.post("/api/v1/reflections", {"episodes": ids}).status_code == 404, "a private scope is private"

    def test_what_is_private_is_not_concluded_into_a_shared_scope(self, api, agent) -> None:
        mine = episodes_of(agent, 1)[0]
        shared = api.post(
            "/api/v1/memories", {"content": "Deployments go through staging.", "kind": "fact", "scope": "team"}
        )
        done = look(api, [mine.pk, shared.json()["id"]])
        assert done.scope.slug == "private-coder"

    def test_a_model_looks_across_and_its_quotes_are_checked(self, api, agent, settings, model_server) -> None:
        episodes = episodes_of(agent, 2)
        settings.LLM_BASE_URL, settings.LLM_API_KEY = model_server.base_url, "test"
        settings.LLM_MODEL = settings.LLM_MODEL_STRONG = "stub"
        done = look(api, [episode.pk for episode in episodes])
        assert (done.distiller, done.model) == ("model", "stub")
        asked = str(model_server.requests[-1])
        assert "This record looks across many tasks" in asked
        assert {row["reason"] for row in done.rejected} <= {"not_durable", "not_grounded", "too_vague"}
        assert not Memory.objects.of(agent.team).filter(source="consolidation", kind="task").exists()


@pytest.mark.django_db(transaction=True)
def test_equal_requests_at_once_start_one_look(agent) -> None:
    with team_transaction(agent.team):
        ids = [str(factories.memory(agent, f"Region {n} is deployed by hand.").pk) for n in ("one", "two")]
    secret = factories.token(agent.team, agent)

    def ask(_: int) -> str:
        client = factories.ApiClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
        try:
            return client.post("/api/v1/reflections", {"episodes": ids}).json()["id"]
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(ask, range(6)))) == 1


@pytest.mark.django_db
class TestWeekly:
    def test_each_scope_with_new_episodes_is_looked_at_once_a_week(self, agent) -> None:
        episodes_of(agent, 2)
        now = timezone.now()
        assert weekly.request_due(now) == 1
        assert weekly.request_due(now + timedelta(hours=1)) == 0
        pipeline.reflect(agent.team, Reflection.objects.of(agent.team).get(trace=None).pk)
        assert Memory.objects.of(agent.team).filter(source="consolidation").exists()
        assert weekly.request_due(now + timedelta(days=30)) == 0, "what is old is not looked at again"

    def test_the_command_says_what_it_asked_for(self, agent, capsys) -> None:
        episodes_of(agent, 2)
        call_command("consolidate", team=agent.team.slug)
        call_command("consolidate", team=agent.team.slug)
        call_command("consolidate", team=agent.team.slug, again=True)
        assert capsys.readouterr().out.count("1 looks asked for") == 2

    def test_a_shared_scope_is_looked_at_for_nobody_in_particular(self, api, agent, team_api) -> None:
        for content in ("Deployments go through staging first.", "The nightly build starts at two."):
            api.post("/api/v1/memories", {"content": content, "kind": "fact", "scope": "team"})
        assert weekly.request_due(timezone.now()) == 1
        look_id = Reflection.objects.of(agent.team).get(trace=None).pk
        pipeline.reflect(agent.team, look_id)
        shown = team_api.get(f"/api/v1/reflections/{look_id}").json()
        assert (shown["agent"], shown["scope"], shown["trace"], shown["status"]) == (None, "team", None, "nothing_new")


@pytest.mark.django_db
def test_a_suspended_team_is_left_alone(agent) -> None:
    episodes_of(agent, 2)
    with team_transaction(agent.team):
        agent.team.suspended_at = timezone.now()
        agent.team.save(update_fields=["suspended_at"])
    assert weekly.request_due(timezone.now()) == 0
