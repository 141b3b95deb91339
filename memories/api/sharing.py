"""Sharing a memory, and taking a merge apart, over REST."""

from __future__ import annotations

import uuid

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.enums import TokenScope
from hindsight_site.api.idempotency import idempotent
from hindsight_site.api.views import TokenView, page, read_input
from memories import actions, scopes
from memories.actions.promoting import copy_in
from memories.api import serializers as forms
from memories.api.memories import one, render, writable_memory
from memories.api.verbs import RelatedView
from memories.models import Merge

WRITE, REVIEW = TokenScope.MEMORY_WRITE, TokenScope.REVIEW


class PromoteIn(serializers.Serializer):
    scope = serializers.CharField(max_length=80, help_text="The shared scope to copy it to.")


class SplitIn(serializers.Serializer):
    merge = serializers.UUIDField(
        required=False, allow_null=True, default=None, help_text="Which of its merges; left out, the latest."
    )
    reason = serializers.CharField(max_length=300, required=False, allow_blank=True, default="")


class MergeOut(serializers.ModelSerializer):
    content = serializers.CharField(source="said.content")
    agent = serializers.CharField(source="agent.slug", allow_null=True, default=None)
    trace = serializers.UUIDField(source="trace_id", allow_null=True)

    class Meta:
        model = Merge
        fields = ["id", "content", "agent", "trace", "counted", "created_at"]


class PromoteView(TokenView):
    token_scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="memories_promote", request=PromoteIn, responses={201: forms.MemoryOut, 200: forms.MemoryOut}
    )
    def post(self, request: Request, memory_id: uuid.UUID) -> Response:
        """Copy a private memory to a shared scope: 201, or 200 when it was copied there before.

        Takes a token with the scope `review` that is bound to no agent, or the independent support of two agents:
        traces that tell different things, each sent with a token bound to its agent.
        """
        caller = self.caller(request)
        memory = writable_memory(caller, memory_id)
        scope = scopes.writable(caller.team, caller.agent, read_input(PromoteIn, request.data)["scope"])
        known = copy_in(caller.team, memory, scope) is not None
        reviewed = REVIEW in caller.scopes and caller.agent is None
        copy = actions.promote(team=caller.team, by=caller.actor, memory=memory, scope=scope, reviewed=reviewed)
        answer = one(copy, caller)
        answer.status_code = 200 if known else 201
        return answer


class SplitView(TokenView):
    token_scopes = {"POST": WRITE}

    @extend_schema(operation_id="memories_split", request=SplitIn, responses={201: forms.MemoryOut})
    @idempotent
    def post(self, request: Request, memory_id: uuid.UUID) -> Response:
        """Bring back what this memory took in as a memory of its own, with its own evidence."""
        caller = self.caller(request)
        memory = writable_memory(caller, memory_id)
        wanted = read_input(SplitIn, request.data or {})
        new = actions.split(team=caller.team, by=caller.actor, memory=memory, **wanted)
        return Response(render([new], caller)[0], status=201)


class MergesView(RelatedView):
    @extend_schema(operation_id="memories_merges", responses=MergeOut(many=True))
    def get(self, request: Request, memory_id: uuid.UUID) -> Response:
        """What it took in because it said the same, newest first."""
        memory = self.memory(request, memory_id)
        rows = Merge.objects.of(memory.team).filter(memory=memory).select_related("agent")
        return page(request, rows, lambda found: MergeOut(found, many=True).data)
