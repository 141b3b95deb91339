"""Conflicts over REST: list, decide, undo."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.api.views import TokenView, page, read_input
from memories import actions, judging_queries, scopes
from memories.api import serializers as forms
from memories.api.memories import masked_change, render
from memories.enums import ConflictReason, Resolution
from memories.models import Relation, Settlement

READ, REVIEW = TokenScope.MEMORY_READ, TokenScope.REVIEW


class SettlementOut(serializers.ModelSerializer):
    by = serializers.CharField(source="actor_label")
    at = serializers.DateTimeField(source="created_at")

    class Meta:
        model = Settlement
        fields = ["decision", "condition", "note", "by", "at", "undone_at"]


class ConflictOut(serializers.Serializer):
    id = serializers.UUIDField()
    reason = serializers.ChoiceField(choices=[*ConflictReason.choices, ("", "Joined by a person")])
    in_words = serializers.CharField()
    created_at = serializers.DateTimeField()
    left = forms.MemoryOut(help_text="The one that stood there first.")
    right = forms.MemoryOut(help_text="The later one.")
    settlement = SettlementOut(allow_null=True)


class StateIn(serializers.Serializer):
    state = serializers.ChoiceField(choices=["open", "settled"], default="open")


class ResolveIn(serializers.Serializer):
    decision = serializers.ChoiceField(choices=Resolution.choices)
    condition = serializers.CharField(
        max_length=300, required=False, allow_blank=True, default="", help_text="For both: when each of them holds."
    )
    note = serializers.CharField(max_length=1000, required=False, allow_blank=True, default="")


def rendered(edges: list[Relation], caller: Caller) -> list[dict[str, Any]]:
    """Conflicts with both sides whole and the standing decision."""
    settlements = judging_queries.settlements_of(caller.team, edges)
    sides = {side.pk: side for edge in edges for side in (edge.target, edge.source)}
    bodies = {body["id"]: body for body in render(list(sides.values()), caller)}
    return [
        {
            "id": str(edge.pk),
            "reason": edge.note if edge.note in ConflictReason.values else "",
            "in_words": words(edge),
            "created_at": edge.created_at,
            "left": bodies[str(edge.target_id)],
            "right": bodies[str(edge.source_id)],
            "settlement": SettlementOut(settlements[edge.pk]).data if edge.pk in settlements else None,
        }
        for edge in edges
    ]


def words(edge: Relation) -> str:
    """Why the two sides of a conflict cannot both hold, for a reader."""
    return ConflictReason(edge.note).label if edge.note in ConflictReason.values else edge.note


class ConflictsView(TokenView):
    token_scopes = {"GET": READ}

    @extend_schema(operation_id="conflicts_list", parameters=[StateIn], responses=ConflictOut(many=True))
    def get(self, request: Request) -> Response:
        """The contradictions that this token may see: the open ones, or with `state=settled` the decided ones."""
        caller = self.caller(request)
        settled = read_input(StateIn, request.query_params.dict())["state"] == "settled"
        rows = judging_queries.conflicts(caller.team, caller.agent, settled=settled)
        return page(request, rows, lambda found: rendered(found, caller))


def judged(caller: Caller, conflict_id: uuid.UUID) -> Relation:
    """Return a conflict whose two scopes the caller may write to."""
    edge = judging_queries.conflict(caller.team, caller.agent, conflict_id)
    for side in (edge.source, edge.target):
        scopes.writable(caller.team, caller.agent, side.scope.slug)
    return edge


class ResolveView(TokenView):
    token_scopes = {"POST": REVIEW}

    @extend_schema(operation_id="conflicts_resolve", request=ResolveIn, responses=ConflictOut)
    def post(self, request: Request, conflict_id: uuid.UUID) -> Response:
        """Decide which side holds. The loser becomes `superseded`; `both` says in `condition` when each holds."""
        caller = self.caller(request)
        edge = judged(caller, conflict_id)
        wanted = masked_change(read_input(ResolveIn, request.data))
        actions.settle_conflict(team=caller.team, by=caller.actor, conflict=edge, **wanted)
        return Response(rendered([judged(caller, conflict_id)], caller)[0])


class UndoView(TokenView):
    token_scopes = {"POST": REVIEW}

    @extend_schema(operation_id="conflicts_undo", request=None, responses=ConflictOut)
    def post(self, request: Request, conflict_id: uuid.UUID) -> Response:
        """Take the standing decision back: both memories as they were, the conflict open again."""
        caller = self.caller(request)
        edge = judged(caller, conflict_id)
        actions.undo_settlement(team=caller.team, by=caller.actor, conflict=edge)
        return Response(rendered([judged(caller, conflict_id)], caller)[0])
