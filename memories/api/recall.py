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
from memories import actions, recall, receipt_queries, scopes
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
        wanted = read_input(forms.RecallIn, request.data)
        explain = wanted.pop("explain")
        return Response(render(ask(self.caller(request), wanted), explain))


def ask(caller: Caller, wanted: dict[str, Any]) -> recall.Answer:
    """Recall what a checked payload asks for, for the agent that the call speaks for."""
    agent = acting_agent(caller, wanted.pop("agent"))
    searched = scopes.select(caller.team, agent, wanted.pop("scopes"))
    return recall.recall(
        team=caller.team, agent=agent, scopes=searched, question=recall.Question(**wanted), token=caller.token
    )


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
        **({"late": list(answer.late)} if answer.late else {}),
        "took_ms": answer.took_ms,
    }
    return {**body, "filtered": answer.filtered} if explain else body


class FeedbackView(TokenView):
    token_scopes = {"POST": TokenScope.MEMORY_WRITE}

    @extend_schema(operation_id="feedback", request=forms.FeedbackIn, responses=forms.FeedbackOut)
    @idempotent
    def post(self, request: Request) -> Response:
        """Say what became of recalled memories. Sent again, the newer word counts."""
        return Response(tell(self.caller(request), read_input(forms.FeedbackIn, request.data)))


def tell(caller: Caller, wanted: dict[str, Any]) -> dict[str, Any]:
    """Record the feedback in a checked payload; say how much of it there was."""
    receipt = find_recall(caller, wanted["recall_id"])
    stored = actions.give_feedback(
        team=caller.team, by=caller.actor, recall=receipt, items=feedback_items(caller, receipt, wanted)
    )
    return {"recall_id": str(receipt.pk), "recorded": len(stored)}


def find_recall(caller: Caller, recall_id: Any) -> Recall:
    """Return a recall of this caller's agent (a team token: of the team), or raise `NotFound`."""
    return receipt_queries.get(caller.team, caller.agent, recall_id)


def feedback_items(caller: Caller, receipt: Recall, wanted: dict[str, Any]) -> list[FeedbackItem]:
    """The items as sent; or one success for the whole recall (all hits adopted when none was marked)."""
    if wanted.get("items"):
        return [
            FeedbackItem(str(item["memory"]), item["adopted"], item["success"], mask_text(item["note"]))
            for item in wanted["items"]
        ]
    given = Feedback.objects.of(caller.team).filter(recall=receipt).values_list("memory_id", "adopted", "note")
    # The end of the task is told of what was left aside too: that is what adopting it is compared with.
    told = [FeedbackItem(str(memory), adopted, wanted["success"], note) for memory, adopted, note in given]
    handed_out = receipt.hits.values_list("memory_id", flat=True)
    return told or [FeedbackItem(str(memory), True, wanted["success"]) for memory in handed_out]
