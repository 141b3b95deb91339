"""Quotas: what a team may keep and use up, what happens then, and where it can see it."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import psycopg
import pytest
from django.db import connections
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts import limits, quotas
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.enums import Spent
from hindsight_site.accounts.models import TeamUsage
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions as memory_actions
from memories.models import Memory
from reflection import pipeline
from reflection.models import Trace
from tests import factories

pytestmark = pytest.mark.django_db

TEXTS = ("The export wants YYYY-MM.", "Billing closes on the fifth.", "The staging host is retired.")


@pytest.fixture(autouse=True)
def _fresh_counts():
    quotas.forget_counts()
    yield
    limits.close()


def write(client, content: str):
    return client.post("/api/v1/memories", {"kind": "fact", "content": content})


def spent(team, kind: Spent) -> int:
    with team_transaction(team):
        return quotas.spent(team, kind)


def spend(team, kind: Spent, amount: int) -> None:
    with team_transaction(team):
        quotas.spend(team, kind, amount)


def refused(answer) -> dict:
    """Check the form of a refusal, and return its body."""
    assert answer.status_code == 429, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "quota_exceeded"
    assert int(answer["Retry-After"]) >= 1
    return answer.json()


# --- Live memories ----------------------------------------------------------------------------------


def test_a_full_team_remembers_nothing_new(api, other_api, settings) -> None:
    settings.QUOTA_MEMORIES = 2
    assert [write(api, text).status_code for text in TEXTS[:2]] == [201, 201]
    body = refused(write(api, TEXTS[2]))
    assert body["detail"] == "This team has 2 live memories, and may have 2. Archive or forget some."
    assert Memory.objects.count() == 2
    assert write(api, TEXTS[0]).status_code == 200, "what is known already takes no room"
    assert write(other_api, TEXTS[2]).status_code == 201, "another team has its own quota"


def test_the_limit_holds_when_other_processes_have_written(api, agent, settings) -> None:
    settings.QUOTA_MEMORIES = 3
    assert write(api, TEXTS[0]).status_code == 201
    for text in TEXTS[1:]:
        factories.memory(agent, text)
    quotas.forget_counts()  # as in a process that has counted nothing yet
    refused(write(api, "A fourth thing altogether, about lunch."))


def test_making_room_helps(api, agent, settings, monkeypatch) -> None:
    settings.QUOTA_MEMORIES = 1
    made = write(api, TEXTS[0]).json()
    refused(write(api, TEXTS[1]))
    assert api.post(f"/api/v1/memories/{made['id']}/archive", {}).status_code == 200
    refused(write(api, TEXTS[1]))  # a refusal may rest on a count of some seconds ago
    monkeypatch.setattr(quotas, "REFUSAL_KEPT_SECONDS", -1.0)
    assert write(api, TEXTS[1]).status_code == 201


def test_a_batch_over_the_limit_is_refused_whole(api, settings) -> None:
    settings.QUOTA_MEMORIES = 2
    batch = {"memories": [{"kind": "fact", "content": text} for text in TEXTS]}
    refused(api.post("/api/v1/memories/bulk", batch))
    assert Memory.objects.count() == 0


def test_the_memories_are_counted_once_a_minute_and_not_at_each_write(agent, django_assert_max_num_queries) -> None:
    counted: list[int] = []

    def count() -> int:
        counted.append(1)
        return 7

    with django_assert_max_num_queries(0):
        for _ in range(50):
            quotas.check_memory(agent.team, count)
    assert len(counted) == 1


def test_zero_is_unlimited(api, settings) -> None:
    settings.QUOTA_MEMORIES = settings.QUOTA_TRACES_A_DAY = 0
    assert write(api, TEXTS[0]).status_code == 201
    assert api.post("/api/v1/traces", {"task": "t"}).status_code == 201
    listed = {quota["name"]: quota for quota in api.get("/api/v1/usage").json()["quotas"]}
    assert (listed["memories"]["used"], listed["memories"]["limit"]) == (1, None)


def test_a_reflection_that_finds_no_room_fails_and_says_why(agent, settings) -> None:
    _, reflection = factories.trace(agent)
    settings.QUOTA_MEMORIES = 1
    factories.memory(agent, TEXTS[1])
    quotas.forget_counts()
    pipeline.reflect(agent.team, reflection.pk)
    with team_transaction(agent.team):
        reflection.refresh_from_db()
    assert (reflection.status, reflection.attempts) == ("failed", 1)
    assert reflection.error.startswith("This team has 1 live memories")


# --- Traces a day -----------------------------------------------------------------------------------


def test_traces_of_a_day(api, other_api, team, settings) -> None:
    settings.QUOTA_TRACES_A_DAY = 2
    made = [api.post("/api/v1/traces", {"task": "t"}) for _ in range(2)]
    assert [answer.status_code for answer in made] == [201, 201]
    answer = api.post("/api/v1/traces", {"task": "t"})
    assert refused(answer)["detail"] == "This team has recorded 2 traces today, and may record 2 a day (UTC)."
    assert int(answer["Retry-After"]) <= 24 * 60 * 60
    assert api.delete(f"/api/v1/traces/{made[0].json()['id']}").status_code == 204
    refused(api.post("/api/v1/traces", {"task": "t"}))  # deleting one gives nothing back
    assert spent(team, Spent.TRACES) == 2
    assert other_api.post("/api/v1/traces", {"task": "t"}).status_code == 201


def test_a_new_day_starts_at_zero(api, team, settings) -> None:
    settings.QUOTA_TRACES_A_DAY = 1
    assert api.post("/api/v1/traces", {"task": "t"}).status_code == 201
    with team_transaction(team):
        rows = TeamUsage.objects.of(team).filter(kind=Spent.TRACES)
        rows.update(period=timezone.now().astimezone(UTC).date() - timedelta(days=1))
    assert api.post("/api/v1/traces", {"task": "t"}).status_code == 201


def test_a_trace_that_is_refused_is_not_counted(api, team) -> None:
    bad = {"task": "t", "steps": [{"role": "nobody", "content": "x"}]}
    assert api.post("/api/v1/traces", bad).status_code == 422
    assert (spent(team, Spent.TRACES), Trace.objects.count()) == (0, 0)


def test_a_repeated_request_gets_its_answer_though_the_day_is_full(api, settings) -> None:
    settings.QUOTA_TRACES_A_DAY = 1
    first, again = (api.post("/api/v1/traces", {"task": "t"}, HTTP_IDEMPOTENCY_KEY="k") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()


def test_writers_at_the_same_time_do_not_wait_for_each_other(team) -> None:
    given = {**connections["default"].get_connection_params(), "autocommit": False}
    period = date(2026, 1, 1)
    first = psycopg.connect(**given)
    others: list[psycopg.Connection] = []
    try:
        slot = first.info.backend_pid % quotas.SLOTS
        while not others or others[-1].info.backend_pid % quotas.SLOTS == slot:
            others.append(psycopg.connect(**given))
        # They cannot see this test's team, and are asked about it at a commit only.
        others[-1].execute("SET lock_timeout = '200ms'")
        for line in (first, others[-1]):
            line.execute("SELECT set_config('app.team', %s, true)", [str(team.pk)])
            line.execute(quotas.ADD, [quotas.new_id(), team.pk, "traces", period, quotas.SLOTS, 1])
    finally:
        for line in (first, *others):
            line.rollback()
            line.close()


@given(st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.timezones()))
def test_periods_are_days_and_months_of_utc(at: datetime) -> None:
    day, next_day = quotas.period_of(Spent.TRACES, at)
    month, next_month = quotas.period_of(Spent.MODEL_TOKENS, at)
    utc = at.astimezone(UTC)
    assert day == utc.date()
    assert timedelta() < next_day - utc <= timedelta(days=1)
    assert (month.day, month.month, month.year) == (1, utc.month, utc.year)
    assert (next_month.day, next_month.hour) == (1, 0)
    assert timedelta() < next_month - utc <= timedelta(days=31)


# --- Model tokens a month ---------------------------------------------------------------------------


@pytest.fixture
def _model(settings, model_server) -> None:
    settings.LLM_BASE_URL, settings.LLM_API_KEY = model_server.base_url, "test"
    settings.LLM_MODEL = settings.LLM_MODEL_STRONG = "stub"
    settings.LLM_PRICE_IN, settings.LLM_PRICE_OUT = 2.0, 8.0


def reflected(agent):
    _, reflection = factories.trace(agent)
    pipeline.reflect(agent.team, reflection.pk)
    with team_transaction(agent.team):
        reflection.refresh_from_db()
    return reflection


@pytest.mark.usefixtures("_model")
def test_what_a_model_used_is_counted_with_its_cost(agent) -> None:
    done = reflected(agent)
    assert (done.status, done.distiller) == ("stored", "model")
    assert spent(agent.team, Spent.MODEL_TOKENS) == done.tokens_in + done.tokens_out > 0
    assert spent(agent.team, Spent.MODEL_COST) == done.tokens_in * 2 + done.tokens_out * 8


@pytest.mark.usefixtures("_model")
def test_a_run_that_comes_to_nothing_is_counted_too(agent, model_server) -> None:
    from tests.fakes import Fault

    model_server.script(Fault.REFUSAL)
    done = reflected(agent)
    assert done.status == "failed"
    assert spent(agent.team, Spent.MODEL_TOKENS) == done.tokens_in + done.tokens_out > 0


@pytest.mark.usefixtures("_model")
def test_without_tokens_left_rules_distil_and_say_so(agent, settings, model_server) -> None:
    settings.QUOTA_MODEL_TOKENS_A_MONTH = 100
    spend(agent.team, Spent.MODEL_TOKENS, 100)
    done = reflected(agent)
    assert (done.status, done.distiller, done.tokens_in) == ("stored", "rules", 0)
    assert done.reason.endswith("; by rules, this month's model tokens are used up")
    assert model_server.requests == []


@pytest.mark.usefixtures("_model")
def test_a_new_month_brings_the_model_back(agent, settings) -> None:
    settings.QUOTA_MODEL_TOKENS_A_MONTH = 100
    spend(agent.team, Spent.MODEL_TOKENS, 100)
    with team_transaction(agent.team):
        TeamUsage.objects.of(agent.team).update(period=date(2026, 1, 1))
    assert reflected(agent).distiller == "model"


# --- Seeing it --------------------------------------------------------------------------------------


def test_usage_over_the_api(api, team, other_team, settings) -> None:
    settings.RATE_LIMIT_TOKEN_PER_MINUTE, settings.RATE_LIMIT_TOKEN_BURST = 600, 100
    write(api, TEXTS[0])
    api.post("/api/v1/traces", {"task": "t"})
    spend(team, Spent.MODEL_TOKENS, 1_200)
    spend(team, Spent.MODEL_COST, 2_500_000)
    spend(other_team, Spent.MODEL_TOKENS, 77)
    body = api.get("/api/v1/usage").json()
    listed = {quota["name"]: quota for quota in body["quotas"]}
    assert {name: (quota["used"], quota["limit"]) for name, quota in listed.items()} == {
        "memories": (1, 100_000),
        "traces_today": (1, 10_000),
        "model_tokens_this_month": (1_200, 20_000_000),
    }
    assert listed["memories"]["resets_at"] is None
    assert datetime.fromisoformat(listed["traces_today"]["resets_at"]) > timezone.now()
    assert body["rate_limits"] == [{"name": "token", "per_minute": 600, "burst": 100}]
    assert [(use["agent"], use["requests_today"]) for use in body["tokens"]] == [("coder", 3)]
    this_month = timezone.now().astimezone(UTC).strftime("%Y-%m")
    assert body["months"] == [{"month": this_month, "model_tokens": 1_200, "cost_usd": 2.5}]


def test_an_agents_token_sees_no_other_tokens(api, team, team_api) -> None:
    factories.token(team, factories.agent(team, "second"))
    assert {use["agent"] for use in api.get("/api/v1/usage").json()["tokens"]} == {"coder"}
    assert {use["agent"] for use in team_api.get("/api/v1/usage").json()["tokens"]} == {"coder", "second", None}


def test_usage_needs_the_scope_to_read(agent) -> None:
    client = factories.api_client(agent.team, agent, ["trace:write"])
    assert client.get("/api/v1/usage").status_code == 403


def test_the_page_shows_numbers_bars_and_what_happens_when_full(browse, carol, api, team, other_team, settings) -> None:
    settings.QUOTA_TRACES_A_DAY, settings.QUOTA_MEMORIES = 1, 0
    settings.RATE_LIMIT_TOKEN_PER_MINUTE = 600
    api.post("/api/v1/traces", {"task": "t"})
    spend(team, Spent.MODEL_TOKENS, 1_234_567)
    spend(other_team, Spent.MODEL_TOKENS, 7_654_321)
    page = browse(carol).get(reverse("usage")).content.decode()
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "1,234,567 of 20,000,000" in words
    assert "7,654,321" not in words
    assert "no limit is set" in words
    assert "100 % used: no more are taken today; starts again on" in words
    assert "At most 600 a minute and 200 at once for each token." in words
    assert '<rect x="0" y="0" width="6.17" height="10"/>' in page
    assert f'href="{reverse("usage")}"' in page, "the account menu leads here"


def test_the_page_of_a_new_team(browse, alice) -> None:
    page = browse(alice).get(reverse("usage")).content.decode()
    assert "No tokens yet" in page
    assert "No rate limit is switched on" in page


def test_a_token_that_was_revoked_today_is_still_listed_with_its_requests(api, team, team_api, settings) -> None:
    from hindsight_site.accounts import actions as accounts
    from hindsight_site.accounts.models import ApiToken

    settings.RATE_LIMIT_TOKEN_PER_MINUTE = 600
    api.get("/api/v1/me")
    with team_transaction(team):
        accounts.revoke_token(team=team, by=SYSTEM, token=ApiToken.objects.of(team).get(prefix=api.secret[3:11]))
        accounts.create_token(team=team, by=SYSTEM, name="idle", scopes=["review"], allowed=["review"])
    listed = team_api.get("/api/v1/usage").json()["tokens"]
    assert {(use["agent"], use["name"], use["requests_today"]) for use in listed} == {
        ("coder", "test", 1),
        (None, "test", 1),
        (None, "idle", 0),
    }


def test_the_count_of_live_memories_leaves_out_what_is_gone(agent) -> None:
    kept, gone = factories.memory(agent, TEXTS[0]), factories.memory(agent, TEXTS[1])
    with team_transaction(agent.team):
        memory_actions.archive(team=agent.team, by=SYSTEM, memory=gone)
        assert memory_actions.live_count(agent.team) == 1
    assert kept.status == "active"
