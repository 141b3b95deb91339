"""Quarantine over REST: what is held back and why, release, reject, undo. Names memories by their id."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.api.views import TokenView, page, read_input
from memories import actions, judging_queries
from memories.api import serializers as forms
from memories.api.memories import masked_change, one, render, writable_memory
from memories.enums import QuarantineDecision, QuarantineRule
from memories.models import Memory, QuarantineCase
from memories.safety.screening.glossary import MEANING

REVIEW = TokenScope.REVIEW

DECISIONS = [*QuarantineDecision.choices, ("", "Waiting")]


class FindingOut(serializers.Serializer):
    name = serializers.CharField()
    in_words = serializers.CharField()
    start = serializers.IntegerField()
    end = serializers.IntegerField()
    text = serializers.CharField()


class HeldOut(serializers.Serializer):
    memory = forms.MemoryOut()
    rule = serializers.ChoiceField(choices=[*QuarantineRule.choices, ("", "Not recorded")])
    reason = serializers.CharField()
    channel = serializers.CharField()
    findings = FindingOut(many=True)
    opposes = serializers.ListField(child=serializers.UUIDField(), help_text="The memories it advises against.")
    by = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True)
    decision = serializers.ChoiceField(choices=DECISIONS)
    decided_by = serializers.CharField()
    decided_at = serializers.DateTimeField(allow_null=True)
    note = serializers.CharField()


class StateIn(serializers.Serializer):
    state = serializers.ChoiceField(choices=["waiting", "decided"], default="waiting")


class DecideIn(serializers.Serializer):
    note = serializers.CharField(max_length=300, required=False, allow_blank=True, default="")


def rendered(pairs: list[tuple[Memory, QuarantineCase | None]], caller: Caller) -> list[dict[str, Any]]:
    """Memories with their cases, and what they oppose."""
    memories = [memory for memory, _ in pairs]
    opposed = judging_queries.opposed(caller.team, memories)
    bodies = render(memories, caller)
    return [
        {**_case(memory, case), "memory": body, "opposes": [str(m.pk) for m in opposed.get(memory.pk, ())]}
        for (memory, case), body in zip(pairs, bodies, strict=True)
    ]


def _case(memory: Memory, case: QuarantineCase | None) -> dict[str, Any]:
    if case is None:
        names = ("rule", "reason", "channel", "by", "decision", "decided_by", "note")
        return {**dict.fromkeys(names, ""), "findings": [], "at": None, "decided_at": None}
    return {
        "rule": case.rule,
        "reason": case.reason,
        "channel": case.channel,
        "findings": [
            {
                **finding,
                "in_words": MEANING.get(finding["name"], finding["name"]),
                "text": memory.content[finding["start"] : finding["end"]],
            }
            for finding in case.findings
        ],
        "by": case.actor_label,
        "at": case.created_at,
        "decision": case.decision,
        "decided_by": case.decided_by,
        "decided_at": case.decided_at,
        "note": case.note,
    }


class QuarantineView(TokenView):
    token_scopes = {"GET": REVIEW}

    @extend_schema(operation_id="quarantine_list", parameters=[StateIn], responses=HeldOut(many=True))
    def get(self, request: Request) -> Response:
        """What is held back, with the reason and the words that gave it; with `state=decided` what was decided."""
        caller = self.caller(request)
        if read_input(StateIn, request.query_params.dict())["state"] == "decided":
            cases = judging_queries.decided(caller.team, caller.agent)
            return page(request, cases, lambda found: rendered([(case.memory, case) for case in found], caller))
        rows = judging_queries.held_back(caller.team, caller.agent)
        return page(request, rows, lambda found: waiting(found, caller))


def waiting(memories: list[Memory], caller: Caller) -> list[dict[str, Any]]:
    cases = judging_queries.cases_of(caller.team, memories)
    return rendered([(memory, cases.get(memory.pk)) for memory in memories], caller)


def decision_view(name: str, action: Callable[..., Memory], does: str, form: type | None) -> type[TokenView]:
    """Return the view of `POST quarantine/{id}/<name>`."""

    class DecisionView(TokenView):
        token_scopes = {"POST": REVIEW}

        @extend_schema(operation_id=f"quarantine_{name}", request=form, responses=forms.MemoryOut)
        def post(self, request: Request, memory_id: uuid.UUID) -> Response:
            caller = self.caller(request)
            memory = writable_memory(caller, memory_id)
            wanted = masked_change(read_input(form, request.data or {})) if form else {}
            return one(action(team=caller.team, by=caller.actor, memory=memory, **wanted), caller)

    DecisionView.post.__doc__ = does  # which the API reference shows
    return DecisionView


Release = decision_view(
    "release", actions.release, "It is harmless: a candidate with the trust it had, still to be reviewed.", DecideIn
)
Reject = decision_view("reject", actions.reject, "Refuse it for good; it never reaches an agent.", DecideIn)
Undo = decision_view("undo", actions.undo_quarantine_decision, "Take a release or a rejection back.", None)
