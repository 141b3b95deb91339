"""Receipts over REST: which memory reached which agent when."""

from __future__ import annotations

import uuid

from django.db.models import Prefetch
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.enums import TokenScope
from hindsight_site.api.fields import AwareDateTimeField, ObjectField
from hindsight_site.api.views import TokenView, page, read_input
from memories import receipt_queries
from memories.enums import RecallStatus
from memories.models import Recall, RecallHit
from memories.receipt_queries import ReceiptFilters


class RecallFiltersIn(serializers.Serializer):
    memory = serializers.UUIDField(required=False, default=None, help_text="Recalls that handed out this memory.")
    agent = serializers.CharField(max_length=60, required=False, default="", help_text="An agent's slug.")
    status = serializers.ChoiceField(choices=RecallStatus.choices, required=False, default="")
    created_after = AwareDateTimeField(required=False, default=None, help_text="Included.")
    created_before = AwareDateTimeField(required=False, default=None, help_text="Not included.")


class HandedOut(serializers.ModelSerializer):
    memory = serializers.UUIDField(source="memory_id")

    class Meta:
        model = RecallHit
        fields = ["memory", "revision", "rank", "score", "relevance"]


class RecallHead(serializers.ModelSerializer):
    agent = serializers.CharField(source="agent.slug", allow_null=True, default=None)
    token = serializers.CharField(
        source="token.name", allow_null=True, default=None, help_text="The name of the token that asked."
    )
    token_prefix = serializers.CharField(source="token.prefix", allow_null=True, default=None)
    query = serializers.CharField(help_text="As it was stored: masked.")

    class Meta:
        model = Recall
        fields = [
            "id", "created_at", "agent", "token", "token_prefix", "session_id", "query", "status", "searched_scopes",
            "best_relevance", "degraded", "took_ms",
        ]  # fmt: skip


class RecallReceipt(RecallHead):
    hits = HandedOut(many=True)

    class Meta(RecallHead.Meta):
        fields = [*RecallHead.Meta.fields, "hits"]


class FeedbackOnHit(serializers.Serializer):
    adopted = serializers.BooleanField()
    success = serializers.BooleanField(allow_null=True)
    note = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class ServedOut(serializers.Serializer):
    memory = serializers.UUIDField(source="hit.memory_id")
    revision = serializers.IntegerField(source="hit.revision", help_text="The revision that was handed out.")
    current_revision = serializers.IntegerField(source="memory.revision")
    scope = serializers.CharField(source="memory.scope.slug")
    kind = serializers.CharField(source="memory.kind")
    rank = serializers.IntegerField(source="hit.rank")
    score = serializers.FloatField(source="hit.score")
    relevance = serializers.FloatField(source="hit.relevance")
    parts = serializers.DictField(
        source="hit.parts", child=serializers.FloatField(), help_text="What the score was made of, by name."
    )
    contested = serializers.BooleanField(source="hit.contested")
    content = serializers.CharField(
        allow_null=True,
        help_text="What the memory said at that revision; null when it was forgotten since, or is no longer yours "
        "to read.",
    )
    feedback = FeedbackOnHit(allow_null=True)


class RecallReceiptWhole(RecallHead):
    options = ObjectField(
        help_text="How it was asked: top_k, kinds, tiers, token_budget, the environment (masked) and so on."
    )
    hits = ServedOut(many=True)
    context = serializers.CharField(  # type: ignore[assignment] # a field of the answer
        allow_null=True,
        help_text="The text that was handed out, put together again from the revisions that were served; null when "
        "one of them can no longer be read.",
    )
    context_exact = serializers.BooleanField(help_text="Whether that is the text to the letter.")

    class Meta(RecallHead.Meta):
        fields = [*RecallHead.Meta.fields, "options", "hits", "context", "context_exact"]


class RecallsView(TokenView):
    token_scopes = {"GET": TokenScope.MEMORY_READ}

    @extend_schema(operation_id="recalls_list", parameters=[RecallFiltersIn], responses=RecallReceipt(many=True))
    def get(self, request: Request) -> Response:
        """What was asked and handed out, newest first. A token bound to an agent sees that agent's recalls."""
        caller = self.caller(request)
        filters = ReceiptFilters(**read_input(RecallFiltersIn, request.query_params.dict()))
        rows = receipt_queries.narrow(receipt_queries.visible(caller.team, caller.agent), caller.team, filters)
        rows = rows.prefetch_related(Prefetch("hits", RecallHit.objects.of(caller.team).order_by("rank")))
        return page(request, rows, lambda found: RecallReceipt(found, many=True).data)


class ReceiptView(TokenView):
    token_scopes = {"GET": TokenScope.MEMORY_READ}

    @extend_schema(operation_id="recalls_read", responses=RecallReceiptWhole)
    def get(self, request: Request, recall_id: uuid.UUID) -> Response:
        """One recall: who asked what, and the text of each memory at the revision that was handed out."""
        caller = self.caller(request)
        recall = receipt_queries.get(caller.team, caller.agent, recall_id)
        served = receipt_queries.served(recall, caller.agent)
        context = receipt_queries.context_of(recall, served)
        rest = {"options": recall.options, "context": context.text, "context_exact": context.exact}
        return Response({**RecallHead(recall).data, **rest, "hits": ServedOut(served, many=True).data})
