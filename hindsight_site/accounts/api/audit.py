"""The audit over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts import audit_queries
from hindsight_site.accounts.audit_queries import AuditFilters
from hindsight_site.accounts.enums import ActorKind, TokenScope
from hindsight_site.accounts.models import ApiToken, AuditEvent
from hindsight_site.api.fields import AwareDateTimeField, ObjectField
from hindsight_site.api.views import TokenView, page, read_input


class AuditFiltersIn(serializers.Serializer):
    actor = serializers.CharField(
        max_length=254, required=False, default="", help_text="An actor's id, or part of its label."
    )
    actor_kind = serializers.ChoiceField(
        choices=ActorKind.choices, required=False, default="", help_text="With it, `actor` is an id."
    )
    verb = serializers.CharField(
        max_length=60, required=False, default="", help_text="memory.approved, or memory for all of its kind."
    )
    object_type = serializers.CharField(max_length=40, required=False, default="")
    object_id = serializers.CharField(max_length=64, required=False, default="")
    request_id = serializers.CharField(
        max_length=64, required=False, default="", help_text="What X-Request-ID said of the request that did it."
    )
    since = AwareDateTimeField(required=False, default=None, help_text="Included.")
    until = AwareDateTimeField(required=False, default=None, help_text="Not included.")


class AuditEventOut(serializers.ModelSerializer):
    detail = ObjectField(help_text="Counts and states; never memory text.")
    reason = serializers.CharField(
        allow_null=True, help_text="What was written as the reason; null without one, and when it was deleted since."
    )

    class Meta:
        model = AuditEvent
        fields = [
            "id", "at", "actor_kind", "actor_id", "actor_label", "verb", "object_type", "object_id", "before",
            "after", "detail", "reason", "request_id",
        ]  # fmt: skip


class AuditView(TokenView):
    token_scopes = {"GET": TokenScope.ADMIN}

    @extend_schema(operation_id="audit_list", parameters=[AuditFiltersIn], responses=AuditEventOut(many=True))
    def get(self, request: Request) -> Response:
        """Who did what, newest first; for a token bound to an agent, what that agent's tokens did."""
        caller = self.caller(request)
        wanted = read_input(AuditFiltersIn, request.query_params.dict())
        events = audit_queries.found(caller.team, AuditFilters(**wanted))
        if caller.agent is not None:
            tokens = ApiToken.objects.of(caller.team).filter(agent=caller.agent).values_list("pk", flat=True)
            events = events.filter(actor_kind=ActorKind.TOKEN, actor_id__in=[str(pk) for pk in tokens])
        return page(request, events, lambda found: AuditEventOut(found, many=True).data, ("-at", "-id"))
