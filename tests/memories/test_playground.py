"""The playground: the very answer of a recall, explained, and no trace of having asked."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import AuditEvent
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions, explaining
from memories.enums import Kind, Tier
from memories.models import Memory, Recall, RecallHit
from memories.policy import RANKING
from tests import factories

pytestmark = pytest.mark.django_db
PAGE = "/playground/"
SAID = "Releases are deployed with make deploy after the staging check."
ASKED = "how are releases deployed?"


@pytest.fixture
def memory(agent) -> Memory:
    return factories.memory(agent, SAID)


@pytest.fixture
def look(browse, carol):
    """`look(q=…, agent=…)` asks as a viewer, and returns the response."""
    client = browse(carol)

    def ask(status: int = 200, **given: Any):
        response = client.get(PAGE, {"q": ASKED, "agent": "coder", **given})
        assert response.status_code == status, response.content[-2000:]
        return response

    return ask


# --- The same answer, without a trace --------------------------------------------------------------------


def test_it_shows_what_the_agent_would_get(look, memory, api) -> None:
    factories.memory(api.agent, "The deploy of releases needs AWS_PROFILE set.")
    shown = look(min_relevance="0").context
    body = api.post("/api/v1/recall", {"query": ASKED, "min_relevance": 0}).json()
    assert [str(one.hit.memory) for one in shown["hits"]] == [hit["memory"] for hit in body["hits"]]
    assert [one.hit.relevance for one in shown["hits"]] == [hit["relevance"] for hit in body["hits"]]
    assert shown["found"].context == body["context"] != ""


def test_it_leaves_no_trace(look, memory, team) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert look().context["hits"]
    wrote = [one["sql"] for one in queries if one["sql"].split()[0].upper() in ("INSERT", "UPDATE", "DELETE")]
    assert not [sql for sql in wrote if "session" not in sql]
    with team_transaction(team):
        memory.refresh_from_db()
        assert (memory.access_count, memory.unused_streak, memory.last_accessed_at) == (0, 0, None)
        assert not Recall.objects.of(team).exists()
        assert not RecallHit.objects.of(team).exists()
        assert not AuditEvent.objects.of(team).filter(verb__startswith="recall").exists()


def test_no_match_is_said_plainly(look, memory) -> None:
    page = look(q="what is the capital of Mongolia?").content.decode()
    assert "No match, said plainly" in page
    assert "no_match" in page
    assert "Not relevant enough" in page or "shares a word or a meaning" in page


def test_what_is_left_out_is_named_with_the_reason(look, memory) -> None:
    shown = look(min_relevance="1").context
    assert [(group.count, group.best[0][0].pk) for group in shown["left_out"]] == [(1, memory.pk)]
    assert shown["left_out"][0].words == explaining.LEFT_OUT["below_floor"]
    assert not shown["hits"]


def test_another_environment_is_named(look, agent) -> None:
    factories.memory(agent, SAID, environment={"os": "linux"})
    assert look(environment="os = linux").context["hits"]
    shown = look(environment="os: windows").context
    assert not shown["hits"]
    assert [group.words for group in shown["left_out"]] == [explaining.LEFT_OUT["other_environment"]]


def test_the_call_asks_the_same(look, memory, api) -> None:
    shown = look(k="3", budget="400", kind=["fact"], scope=["private-coder"], min_relevance="0.1").context
    body = json.loads(shown["call"])
    assert (body["top_k"], body["token_budget"], body["scopes"]) == (3, 400, ["private-coder"])
    answer = api.post("/api/v1/recall", body).json()
    assert [hit["memory"] for hit in answer["hits"]] == [str(one.hit.memory) for one in shown["hits"]]


# --- Knobs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"k": "51"}, "k"),
        ({"k": "two"}, "k"),
        ({"budget": "10"}, "budget"),
        ({"min_relevance": "nan"}, "min_relevance"),
        ({"min_relevance": "1.5"}, "min_relevance"),
        ({"as_of": "yesterday"}, "as_of"),
        ({"as_of": "0001-01-01T00:00"}, "as_of"),
        ({"environment": "linux"}, "environment"),
        ({"tags": ",".join(map(str, range(21)))}, "tags"),
        ({"scope": "private-nobody"}, "scope"),
        ({"agent": "nobody"}, "agent"),
        ({"kind": "poem"}, "kind"),
        ({"q": " \n"}, "q"),
        ({"q": "x" * 2001}, "q"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_what_is_wrong_is_said_at_its_field(look, memory, given, field) -> None:
    response = look(422, **given)
    assert list(response.context["form"].errors) == [field]
    assert "found" not in response.context


def test_as_of_shows_the_text_of_then(look, memory, team) -> None:
    then = timezone.now()
    with team_transaction(team):
        memory.refresh_from_db()
        actions.revise(team=team, by=SYSTEM, memory=memory, content="Releases are deployed by the release bot.")
    assert "release bot" in look(min_relevance="0").context["hits"][0].hit.snippet
    at = then.replace(tzinfo=None).isoformat(timespec="milliseconds")
    assert look(min_relevance="0", as_of=at).context["hits"][0].hit.snippet == SAID
    before = (then - timedelta(days=1)).replace(tzinfo=None).isoformat(timespec="minutes")
    assert not look(min_relevance="0", as_of=before).context["hits"]


def test_without_an_agent_only_shared_scopes_are_asked(look, memory) -> None:
    shown = look(agent="", min_relevance="0").context
    assert not shown["hits"]
    assert [scope.slug for scope in shown["searched"]] == ["team"]


def test_what_is_sent_is_answered_at_an_address_to_share(browse, carol, memory) -> None:
    client = browse(carol)
    sent = client.post(PAGE, {"q": ASKED, "agent": "coder", "k": "", "kind": ["fact", "task"]})
    assert sent.status_code == 303
    told = urlsplit(sent["Location"])
    assert parse_qs(told.query) == {"q": [ASKED], "agent": ["coder"], "kind": ["fact", "task"]}
    assert client.get(sent["Location"]).context["hits"]


def test_a_question_too_long_for_an_address_is_answered_in_place(browse, carol, memory) -> None:
    answer = browse(carol).post(PAGE, {"q": "怎样部署发布版本？" * 200, "agent": "coder"})
    assert answer.status_code == 200
    assert "too long for an address" in answer.content.decode()


# --- Whose memories --------------------------------------------------------------------------------------------


def test_another_team_is_not_there(browse, mallory, memory) -> None:
    response = browse(mallory).get(PAGE, {"q": ASKED, "agent": "coder", "min_relevance": "0"})
    assert response.status_code == 422
    assert SAID not in response.content.decode()
    response = browse(mallory).get(PAGE, {"q": ASKED, "min_relevance": "0"})
    assert SAID not in response.content.decode()


def test_an_agent_is_shown_no_other_agents_private_memories(look, memory, team) -> None:
    factories.agent(team, "second")
    assert not look(agent="second", min_relevance="0").context["hits"]
    look(422, agent="second", scope="private-coder")


# --- The way there ----------------------------------------------------------------------------------------------


def test_a_receipt_leads_here(browse, carol, api, memory, team) -> None:
    asked = {"query": ASKED, "top_k": 3, "kinds": ["fact"], "min_relevance": 0, "token_budget": 300}
    recall_id = api.post("/api/v1/recall", asked).json()["recall_id"]
    with team_transaction(team):
        memory.refresh_from_db()
        actions.revise(team=team, by=SYSTEM, memory=memory, content="Releases are deployed by the release bot.")
    client = browse(carol)
    page = client.get(reverse("recall", args=[recall_id]))
    now = client.get(f"{PAGE}?{page.context['again']}").context
    assert [one.hit.snippet for one in now["hits"]] == ["Releases are deployed by the release bot."]
    body = json.loads(now["call"])
    assert {name: body[name] for name in ("query", "top_k", "kinds", "min_relevance", "token_budget")} == asked
    then = client.get(f"{PAGE}?{page.context['again_then']}").context
    assert [one.hit.snippet for one in then["hits"]] == [SAID]


def test_a_memory_leads_here(browse, carol, memory, team) -> None:
    client = browse(carol)
    page = client.get(reverse("memory", args=[memory.pk]))
    found = client.get(f"{PAGE}?{page.context['again']}").context
    assert [one.hit.memory for one in found["hits"]] == [memory.pk]
    with team_transaction(team):
        memory.refresh_from_db()
        actions.demote(team=team, by=SYSTEM, memory=memory)
    assert client.get(reverse("memory", args=[memory.pk])).context["again"] == ""


def test_the_page_asks_the_database_little(look, agent, memory) -> None:
    look(min_relevance="0")
    with CaptureQueriesContext(connection) as few:
        look(min_relevance="0")
    for number in range(12):
        factories.memory(agent, f"Release {number} was deployed on day {number} from branch {number}.")
    with CaptureQueriesContext(connection) as many:
        assert len(look(min_relevance="0", k="50").context["hits"]) > 5
    assert len(many) <= len(few) + 1  # folding looks at traces when lessons and episodes meet
    assert len([one for one in few if one["sql"].lstrip().upper().startswith(("SELECT", "WITH"))]) <= 25


# --- The words -------------------------------------------------------------------------------------------------


SHARES = st.floats(0, 1)
PARTS = st.fixed_dictionaries(
    {
        **dict.fromkeys(("vector", "keyword", "session", "time", "exact", "recency", "confidence", "weight"), SHARES),
        "context": st.floats(-1, 1),
        "heat": st.floats(1, 1.2),
    }
)


@given(PARTS, SHARES, st.sampled_from(Tier.values))
def test_every_part_that_says_something_is_told(parts, relevance, tier) -> None:
    told = {part.name: part for part in explaining.evidence(parts)}
    assert {"Meaning", "Words"} <= set(told)
    assert ("Surroundings" in told, "Time" in told, "Identifier" in told) == (
        parts["context"] != 0, parts["time"] != 0, parts["exact"] != 0,
    )  # fmt: skip
    sums = explaining.score(parts, relevance, tier, RANKING)
    assert [part.name for part in sums] == ["Relevance", "Recency", "Confidence", "Weight", "Heat"]
    assert all(part.share is None or 0 <= part.share <= 1 for part in sums)


@given(PARTS, SHARES, st.floats(0, 1))
def test_only_a_score_below_its_formula_was_held_back(parts, relevance, below) -> None:
    blend = 0.5 * relevance + 0.3 * parts["recency"] + 0.2 * parts["confidence"]
    full = parts["weight"] * blend * parts["heat"]
    assert not explaining.is_held_back(parts, relevance, full, RANKING)
    assert explaining.is_held_back(parts, relevance, full - below - 0.001, RANKING)


def test_a_contested_hit_says_that_it_was_held_back(look, agent, team) -> None:
    factories.memory(agent, "Access tokens expire after 15 minutes.", kind=Kind.FACT)
    newer = factories.memory(agent, "Access tokens expire after 60 minutes.", kind=Kind.FACT)
    with team_transaction(team):
        newer.refresh_from_db()
        actions.approve(team=team, by=SYSTEM, memory=newer)
    hits = look(q="when do access tokens expire?", min_relevance="0").context["hits"]
    assert [one.hit.contested for one in hits] == [True, True]
    assert hits[0].hit.memory == newer.pk
