"""Logging in and out, teams, colours, the overview, and connecting an agent."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site import connect, plots, readable
from hindsight_site.accounts.enums import TeamRole
from hindsight_site.accounts.models import Agent, ApiToken, Membership, User
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.marks import LOOKS, mark_of
from hindsight_site.templatetags.hindsight import ICONS
from memories.enums import Status
from memories.models import Feedback, Memory, Recall, RecallHit
from reflection.models import Reflection
from tests import factories

PAGES = ["overview", "memories", "traces", "connect"]
NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)


# --- Logging in, teams, colours ---------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_a_stranger_is_asked_to_log_in(db, name):
    answer = Client().get(reverse(name))
    assert (answer.status_code, answer.url) == (302, f"{reverse('login')}?next={reverse(name)}")


def test_logging_in_leads_to_the_page_that_was_wanted(alice):
    client = Client()
    form = {"username": "ALICE@acme.test", "password": factories.PASSWORD, "next": reverse("traces")}
    answer = client.post(reverse("login"), form)
    assert (answer.status_code, answer.url) == (302, reverse("traces"))
    assert client.post(reverse("logout")).status_code == 302
    assert client.get(reverse("traces")).status_code == 302


def test_a_wrong_password_says_so_without_telling_which(alice):
    for username in ("alice@acme.test", "nobody@acme.test"):
        answer = Client().post(reverse("login"), {"username": username, "password": "wrong"})
        assert "do not belong together" in answer.content.decode()


def test_a_person_without_a_team_is_told_what_to_do(db, browse):
    loner = User.objects.create_user("loner@acme.test", factories.PASSWORD)
    answer = browse(loner).get(reverse("overview"))
    assert answer.status_code == 403
    assert "not in a team yet" in answer.content.decode()


def test_switching_teams_switches_what_is_seen(browse, alice, agent, other_team, other_agent):
    Membership.objects.create(team=other_team, user=alice, role=TeamRole.VIEWER)
    ours, theirs = factories.memory(agent, "Ours alone."), factories.memory(other_agent, "Theirs alone.")
    client = browse(alice)
    assert "Switch" not in client.get(reverse("memories")).content.decode()
    assert ours.content in client.get(reverse("memories")).content.decode()
    client.post(reverse("switch_team"), {"team": str(other_team.pk)})
    page = client.get(reverse("memories")).content.decode()
    assert theirs.content in page
    assert ours.content not in page
    assert client.get(reverse("memory", args=[ours.pk])).status_code == 404


def test_one_cannot_switch_into_a_team_one_is_not_in(browse, alice, other_team):
    client = browse(alice)
    for team in (str(other_team.pk), "nonsense", ""):
        assert client.post(reverse("switch_team"), {"team": team}).status_code == 404
    assert client.get(reverse("overview")).context["team"].slug == "acme"


def test_the_choice_of_colours_is_kept_and_leads_back(browse, alice):
    client = browse(alice)
    answer = client.post(reverse("set_theme"), {"theme": "dark", "next": "/traces/?status=failed"})
    assert answer.url == "/traces/?status=failed"
    assert 'data-theme="dark"' in client.get(reverse("overview")).content.decode()
    client.post(reverse("set_theme"), {"theme": ""})
    assert "data-theme" not in client.get(reverse("overview")).content.decode()
    for elsewhere in ("https://evil.test/", "//evil.test/", "javascript:alert(1)"):
        assert client.post(reverse("set_theme"), {"theme": "x", "next": elsewhere}).url == reverse("overview")


@pytest.mark.parametrize("name", ["switch_team", "set_theme", "logout", "add_agent"])
def test_what_changes_something_wants_a_post(browse, alice, name):
    assert browse(alice).get(reverse(name)).status_code == 405


@pytest.mark.parametrize("name", [*PAGES, "review"])
def test_pages_carry_no_inline_style_or_script(browse, alice, agent, name):
    factories.memory(agent)
    page = browse(alice).get(reverse(name)).content.decode()
    assert not re.search(r"<[^>]+\s(style|on\w+)=", page)
    assert not re.search(r"<script(?![^>]*\ssrc=)", page)
    assert "<style" not in page
    assert page.count("<h1") == 1
    assert 'aria-current="page"' in page


def test_unknown_addresses_answer_with_a_page(browse, alice):
    answer = browse(alice).get("/nowhere/")
    assert answer.status_code == 404
    assert "There is nothing at this address" in answer.content.decode()


# --- The overview -------------------------------------------------------------------------------------


def test_an_empty_team_is_shown_the_way(browse, alice):
    page = browse(alice).get(reverse("overview")).content.decode()
    assert "Nothing has been remembered yet" in page
    assert reverse("connect") in page


def test_the_overview_counts(browse, alice, agent, team):
    kept, gone = factories.memory(agent, "Kept."), factories.memory(agent, "Gone.", status=Status.DEMOTED)
    for status in ("matched", "matched", "no_match"):
        recall = Recall.objects.create(team=team, agent=agent, query="q", status=status)
        Feedback.objects.create(team=team, recall=recall, memory=kept, adopted=status == "matched", success=True)
    factories.memory(agent, "Wait.", status=Status.QUARANTINED)
    context = browse(alice).get(reverse("overview")).context
    assert context["live"]["total"] == 1
    assert gone not in context["latest"]
    assert context["recalls"]["match_rate"] == pytest.approx(2 / 3)
    assert context["feedback"]["used_share"] == pytest.approx(2 / 3)
    assert context["feedback"]["success_share"] == 1
    assert [(entry.icon, entry.count) for entry in context["waiting"]] == [("quarantined", 1)]
    assert context["waiting"][0].text.startswith("memory in quarantine")


def test_the_overview_shows_reflections_and_their_cost(browse, alice, agent):
    factories.trace(agent)
    Reflection.objects.update(status="failed", cost_usd=0.25)
    factories.trace(agent, task="Another")
    reflections = browse(alice).get(reverse("overview")).context["reflections"]
    assert (reflections["failed"], reflections["open"], reflections["cost"]) == (1, 1, 0.25)


def test_the_overview_is_one_teams_own(browse, mallory, agent):
    factories.memory(agent)
    factories.trace(agent)
    context = browse(mallory).get(reverse("overview")).context
    assert (context["live"]["total"], context["reflections"]["total"], context["started"]) == (0, 0, False)


def test_the_overview_takes_a_constant_number_of_queries(browse, alice, agent, django_assert_max_num_queries):
    for number in range(10):
        memory = factories.memory(agent, f"Parcel {number} lies in locker {number * 11}.")
        recall = Recall.objects.create(team=agent.team, agent=agent, query="q", status="matched")
        RecallHit.objects.create(
            team=agent.team, recall=recall, memory=memory, revision=1, rank=1, score=1, relevance=1
        )
    client = browse(alice)
    # Seventeen, and the savepoint of the request around them.
    with django_assert_max_num_queries(19):
        client.get(reverse("overview"))


# --- Connecting ---------------------------------------------------------------------------------------


def test_creating_an_agent_makes_a_slug_and_leads_to_its_page(browse, alice, team):
    answer = browse(alice).post(reverse("add_agent"), {"name": "Support Bot"})
    assert (answer.status_code, answer.url) == (302, reverse("connect_agent", args=["support-bot"]))
    assert Agent.objects.get(team=team, slug="support-bot").name == "Support Bot"


@pytest.mark.parametrize(
    ("form", "status", "said"),
    [
        ({"name": "Coder", "slug": "coder"}, 409, "has an agent coder already"),
        ({"name": "机器人"}, 422, "lower-case letters"),
        ({"name": "X", "slug": "Not A Slug"}, 422, "lower-case letters"),
    ],
)
def test_a_refused_agent_keeps_what_was_typed(browse, alice, agent, form, status, said):
    answer = browse(alice).post(reverse("add_agent"), form)
    assert answer.status_code == status
    page = answer.content.decode()
    assert said in page
    assert form["name"] in page


def test_the_secret_is_shown_once_and_works(browse, alice, agent):
    client = browse(alice)
    answer = client.post(reverse("add_token", args=["coder"]), {"name": "CI"})
    secret = re.search(r"hs_[a-z0-9]{8}_[\w-]{43}", answer.content.decode())
    assert secret
    assert "no-store" in answer["Cache-Control"]
    ready = json.loads(answer.context["configuration"])["mcpServers"]["hindsight"]
    assert ready["env"] == {"HINDSIGHT_TOKEN": secret[0]}, "nothing is left to fill in"
    assert f"Authorization: Bearer {secret[0]}" in answer.context["first_call"]
    page = client.get(reverse("connect_agent", args=["coder"])).content.decode()
    assert secret[0] not in page
    assert secret[0][:11] in page
    me = Client().get("/api/v1/me", headers={"Authorization": f"Bearer {secret[0]}"})
    assert me.status_code == 200
    token = ApiToken.objects.get(name="CI")
    client.post(reverse("revoke_token", args=["coder", token.pk]))
    me = Client().get("/api/v1/me", headers={"Authorization": f"Bearer {secret[0]}"})
    assert me.status_code == 401


def test_the_lights_go_on_one_by_one(browse, alice, agent):
    def on() -> list[bool]:
        page = browse(alice).get(reverse("connect_agent", args=["coder"]))
        return [light.seen_at is not None for light in page.context["lights"]]

    assert on() == [False, False, False, False]
    factories.api_client(agent.team, agent).get("/api/v1/me")
    assert on() == [True, False, False, False]
    factories.trace(agent)
    factories.memory(agent)
    Recall.objects.create(team=agent.team, agent=agent, query="q", status="no_match")
    assert on() == [True, True, True, True]


def test_the_samples_are_what_the_api_takes(agent, settings):
    settings.SITE_URL = "https://memory.example"
    samples = {sample["label"]: sample["code"] for sample in connect.samples(agent)}
    client = factories.api_client(agent.team, agent)
    for label, path in (("Send a trace", "/api/v1/traces"), ("Recall before a task", "/api/v1/recall")):
        assert f"https://memory.example{path} " in samples[label]
        body = json.loads(samples[label].split("-d '")[1].rstrip("'"))
        assert client.post(path, body).status_code in (200, 201), label
    compile(samples["Both from Python"], "sample", "exec")
    compile(samples["MCP from Python"], "sample", "exec")
    assert '"https://memory.example/mcp"' in samples["MCP from Python"]
    bridge = json.loads(samples["Give an MCP client the tools"])["mcpServers"]["hindsight"]
    assert bridge == {
        "command": "hindsight-mcp",
        "args": ["--url", "https://memory.example"],
        "env": {"HINDSIGHT_TOKEN": "hs_…"},
    }
    assert "hs_…" in samples["Give an MCP client the tools"]


@pytest.mark.parametrize("name", ["bob", "carol"])
def test_only_who_manages_connects(browse, request, agent, name):
    client = browse(request.getfixturevalue(name))
    assert client.get(reverse("connect_agent", args=["coder"])).status_code == 200
    assert reverse("add_agent") not in client.get(reverse("connect")).content.decode()
    assert client.post(reverse("add_agent"), {"name": "x"}).status_code == 403
    assert client.post(reverse("add_token", args=["coder"])).status_code == 403
    assert not ApiToken.objects.exists()


def test_another_teams_agent_is_not_found(browse, mallory, alice, agent):
    browse(alice).post(reverse("add_token", args=["coder"]), {"name": "CI"})
    client, token = browse(mallory), ApiToken.objects.get(name="CI")
    assert client.get(reverse("connect_agent", args=["coder"])).status_code == 404
    assert client.post(reverse("add_token", args=["coder"])).status_code == 404
    assert client.post(reverse("revoke_token", args=["coder", token.pk])).status_code == 404
    token.refresh_from_db()
    assert token.revoked_at is None


# --- What the pages are made of -------------------------------------------------------------------------


@pytest.mark.parametrize("family", LOOKS)
def test_every_state_has_an_icon_and_a_word(family):
    glossary, _ = LOOKS[family]
    for value in glossary.values:
        mark = mark_of(family, value)
        assert mark.word
        assert (ICONS / f"{mark.icon}.svg").is_file()


@given(st.text(max_size=80), st.text(max_size=80))
def test_a_difference_tells_both_texts(before, after):
    pieces = readable.difference(before, after)
    assert "".join(piece.text for piece in pieces if piece.effect != "added") == before
    assert "".join(piece.text for piece in pieces if piece.effect != "removed") == after


@given(st.text(max_size=600), st.integers(0, 700), st.integers(0, 700))
def test_an_excerpt_is_a_stretch_of_the_text(text, start, end):
    cut = readable.excerpt(text, start, end)
    assert cut.quote == text[min(start, len(text)) : min(end, len(text))]
    assert cut.before.removeprefix("…") in text
    assert cut.after.removesuffix("…") in text


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        (timedelta(seconds=10), "just now"),
        (timedelta(seconds=80), "1 minute ago"),
        (timedelta(minutes=59), "1 hour ago"),
        (timedelta(hours=5), "5 hours ago"),
        (timedelta(days=1), "1 day ago"),
        (timedelta(days=29), "29 days ago"),
        (timedelta(days=40), "10 Apr 2026"),
        (timedelta(hours=-3), "in 3 hours"),
    ],
)
def test_times_are_told_from_now(distance, words):
    assert readable.ago(NOW - distance, NOW) == words


@given(
    st.floats(0.01, 500, allow_nan=False),
    st.floats(0.01, 500, allow_nan=False),
)
def test_the_likely_range_holds_the_mean_and_stays_in_bounds(alpha, beta):
    mean = alpha / (alpha + beta)
    likely = readable.likely(mean, alpha, beta)
    assert 0 <= likely.low <= mean <= likely.high <= 1


@given(
    st.dictionaries(st.integers(0, 27), st.integers(0, 10_000)),
    st.dictionaries(st.integers(0, 27), st.integers(0, 99)),
)
def test_bars_stay_inside_the_plot_and_add_up(lower, upper):
    days = plots.days_until(date(2026, 5, 20), 28)
    plot = plots.bars(days, {days[i]: n for i, n in lower.items()}, {days[i]: n for i, n in upper.items()})
    assert plot.total == sum(lower.values()) + sum(upper.values())
    assert days[-1] == date(2026, 5, 20)
    for bar in plot.bars:
        assert bar.upper_y >= -0.05
        assert bar.lower_y + bar.lower_height == pytest.approx(plots.HEIGHT, abs=0.05)


def test_a_memory_that_another_team_owns_is_never_counted(browse, mallory, other_agent, agent):
    factories.memory(agent)
    factories.memory(other_agent)
    assert browse(mallory).get(reverse("overview")).context["live"]["total"] == 1
    with team_transaction(agent.team):
        assert Memory.objects.of(agent.team).count() == 1
