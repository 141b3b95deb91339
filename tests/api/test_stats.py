"""GET stats: the overview's numbers, counted anew here by hand."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.tenancy import team_transaction
from memories.enums import Kind, Status
from reflection.models import Reflection, ReviewBatch
from reflection.review.sampling import open_batch
from reflection.review.statistics import wilson
from reflection.review.verdicts import decide
from tests import factories

pytestmark = pytest.mark.django_db
STATS = "/api/v1/stats"


def test_an_empty_team_has_zeros_and_no_rates(team_api) -> None:
    body = team_api.get(STATS).json()
    assert body["live"]["total"] == 0
    assert body["acceptance"] == {"this_week": None, "past_weeks": None}
    assert (body["recalls"]["match_rate"], body["use"]["adopted_share"]) == (None, None)
    assert body["reflections"]["cost_usd"] is None
    assert body["refused"] == []


def test_memories_by_tier_kind_and_status(team_api, agent) -> None:
    factories.memory(agent, "The default branch is main.")
    factories.memory(agent, "Answer in French.", kind=Kind.PREFERENCE)
    factories.memory(agent, "The office is in Lyon.", status=Status.DEMOTED)
    body = team_api.get(STATS).json()
    assert body["live"]["total"] == sum(body["live"]["by_tier"].values()) == 2
    assert (body["live"]["by_kind"]["fact"], body["live"]["by_kind"]["preference"]) == (1, 1)
    assert (body["by_status"]["active"], body["by_status"]["demoted"], body["by_status"]["archived"]) == (2, 1, 0)


def test_recalls_and_what_became_of_them(team_api, api, agent) -> None:
    factories.memory(agent, "Run the migrations before the tests.")
    matched = api.post("/api/v1/recall", {"query": "run the migrations", "min_relevance": 0}).json()
    api.post("/api/v1/recall", {"query": "zzz", "min_relevance": 1})
    api.post("/api/v1/feedback", {"recall_id": matched["recall_id"], "success": True})
    body = team_api.get(STATS).json()
    assert body["recalls"] == {"total": 2, "matched": 1, "match_rate": 0.5}
    assert (body["use"]["told"], body["use"]["adopted_share"], body["use"]["success_share"]) == (1, 1.0, 1.0)


def test_this_weeks_acceptance_has_its_band(team_api, team, agent, bob) -> None:
    for n in range(3):
        factories.memory(agent, f"The port of service {n} is {8000 + n}.")
    with team_transaction(team):
        batch = open_batch(team=team, by=SYSTEM)
        batch.items.update(quorum=1)
        for item, decision in zip(batch.items.order_by("position"), ("approve", "approve", "demote"), strict=True):
            decide(team=team, by=person(bob), reviewer=bob, item=item, decision=decision, version=1)
    rate = team_api.get(STATS).json()["acceptance"]["this_week"]
    assert (rate["hits"], rate["n"], rate["is_enough"]) == (2, 3, False)
    assert (rate["low"], rate["high"]) == pytest.approx(wilson(2, 3))
    with team_transaction(team):
        ReviewBatch.objects.filter(pk=batch.pk).update(closes_at=timezone.now() - timedelta(minutes=1))
    acceptance = team_api.get(STATS).json()["acceptance"]
    assert acceptance["this_week"] is None
    assert acceptance["past_weeks"]["n"] == 3


def test_refused_candidates_are_counted_by_reason(team_api, team, agent, browse, bob) -> None:
    _, run = factories.trace(agent)
    reasons = ["not_grounded", "too_vague", "not_grounded"]
    with team_transaction(team):
        Reflection.objects.filter(pk=run.pk).update(
            status="rejected", cost_usd=0.25, rejected=[{"content": "x", "reason": reason} for reason in reasons]
        )
    body = team_api.get(STATS).json()
    assert [(row["reason"], row["count"]) for row in body["refused"]] == [("not_grounded", 2), ("too_vague", 1)]
    assert (body["reflections"]["by_status"]["rejected"], body["reflections"]["cost_usd"]) == (1, 0.25)
    factories.memory(agent)
    page = browse(bob).get(reverse("overview")).content.decode()
    assert "No verbatim evidence in the trace" in page


def test_an_agents_own_token_is_told_to_use_another(api) -> None:
    answer = api.get(STATS)
    assert (answer.status_code, answer.json()["code"]) == (403, "team_token_needed")


def test_another_team_counts_nothing_of_ours(other_team, agent) -> None:
    factories.memory(agent)
    theirs = factories.api_client(other_team, None)
    assert theirs.get(STATS).json()["live"]["total"] == 0
