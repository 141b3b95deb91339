"""Recall and feedback over REST."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.api.callers import acting_agent
from hindsight_site.api.idempotency import idempotent
from hindsight_site.api.views import TokenView, read_input
from hindsight_site.refusals import NotFound
from memories import actions, recall, scopes
from memories.actions import FeedbackItem
from memories.api import examples
from memories.api import serializers as forms
from memories.models import Feedback, Recall
from memories.safety.masking import mask_text


class RecallView(TokenView):
    token_scopes = {"POST": TokenScope.MEMORY_READ}

    @extend_schema(
        operation_id="recall",
        request=forms.RecallIn,
        responses=forms.RecallOut,
        examples=[examples.ASK, examples.MATCHED, examples.NO_MATCH],
    )
    def post(self, request: Request) -> Response:
        """Find the memories that matter for a task, or say plainly that none does."""
        caller = self.caller(request)
        wanted = read_input(forms.RecallIn, request.data)
        agent = acting_agent(caller, wanted.pop("agent"))
        searched = scopes.select(caller.team, agent, wanted.pop("scopes"))
        explain = wanted.pop("explain")
        answer = recall.recall(
            team=caller.team,
            agent=agent,
            scopes=searched,
            question=recall.Question(**wanted),
            token=caller.token,
        )
        return Response(render(answer, explain))


def render(answer: recall.Answer, explain: bool) -> dict[str, Any]:
    """The answer as JSON values."""
    body = {
        "recall_id": str(answer.recall_id),
        "status": answer.status,
        "hits": [{**asdict(hit), "memory": str(hit.memory)} for hit in answer.hits],
        "context": answer.context,
        "best_relevance": answer.best_relevance,
        "searched_scopes": answer.searched_scopes,
        "degraded": answer.degraded,
        "took_ms": answer.took_ms,
    }
    return {**body, "filtered": answer.filtered} if explain else body


class FeedbackView(TokenView):
    token_scopes = {"POST": TokenScope.MEMORY_WRITE}

    @extend_schema(operation_id="feedback", request=forms.FeedbackIn, responses=forms.FeedbackOut)
    @idempotent
    def post(self, request: Request) -> Response:
        """Say what became of recalled memories. Sent again, the newer word counts."""
        caller = self.caller(request)
        wanted = read_input(forms.FeedbackIn, request.data)
        receipt = find_recall(caller, wanted["recall_id"])
        stored = actions.give_feedback(
            team=caller.team, by=caller.actor, recall=receipt, items=feedback_items(caller, receipt, wanted)
        )
        return Response({"recall_id": str(receipt.pk), "recorded": len(stored)})


def find_recall(caller: Caller, recall_id: Any) -> Recall:
    """Return a recall of this caller's agent (a team token: of the team), or raise `NotFound`."""
    recalls = Recall.objects.of(caller.team).filter(pk=recall_id)
    if caller.agent is not None:
        recalls = recalls.filter(agent=caller.agent)
    found = recalls.first()
    if found is None:
        raise NotFound("There is no such recall.", code="recall_not_found")
    return found


def feedback_items(caller: Caller, receipt: Recall, wanted: dict[str, Any]) -> list[FeedbackItem]:
    """The items as sent; or one success for all that were adopted (all hits when none was marked)."""
    if wanted.get("items"):
        return [
            FeedbackItem(str(item["memory"]), item["adopted"], item["success"], mask_text(item["note"]))
            for item in wanted["items"]
        ]
    given = Feedback.objects.of(caller.team).filter(recall=receipt)
    adopted = [str(pk) for pk in given.filter(adopted=True).values_list("memory_id", flat=True)]
    if not adopted and not given.exists():
        adopted = [str(pk) for pk in receipt.hits.values_list("memory_id", flat=True)]
    return [FeedbackItem(memory, True, wanted["success"]) for memory in adopted]
