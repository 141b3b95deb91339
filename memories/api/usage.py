"""What a team uses of what it may, over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.enums import TokenScope
from hindsight_site.api.views import TokenView
from memories import usage


class QuotaOut(serializers.Serializer):
    name = serializers.ChoiceField(choices=["memories", "traces_today", "model_tokens_this_month"])
    used = serializers.IntegerField()
    limit = serializers.SerializerMethodField(help_text="Null: unlimited.")
    resets_at = serializers.DateTimeField(allow_null=True, help_text="When it starts at zero again; null: never.")

    def get_limit(self, quota: usage.Quota) -> int | None:
        return quota.limit or None


class RateLimitOut(serializers.Serializer):
    name = serializers.ChoiceField(choices=["token", "team"], help_text="Of each token, or of all together.")
    per_minute = serializers.IntegerField(help_text="Requests a minute in the long run.")
    burst = serializers.IntegerField(help_text="Requests at once.")


class TokenUseOut(serializers.Serializer):
    prefix = serializers.CharField()
    name = serializers.CharField()
    agent = serializers.CharField(allow_null=True)
    requests_today = serializers.IntegerField(
        allow_null=True, help_text="Since midnight UTC; null while no rate limit is switched on."
    )


class MonthUseOut(serializers.Serializer):
    month = serializers.SerializerMethodField(help_text="Such as 2026-03 (UTC).")
    model_tokens = serializers.IntegerField(help_text="Tokens in and out of all reflections.")
    cost_usd = serializers.FloatField(allow_null=True, help_text="Null: no price is set.")

    def get_month(self, use: usage.MonthUse) -> str:
        return f"{use.month:%Y-%m}"


class UsageOut(serializers.Serializer):
    quotas = QuotaOut(many=True)
    rate_limits = RateLimitOut(many=True)
    tokens = TokenUseOut(many=True)
    months = MonthUseOut(many=True)


class UsageView(TokenView):
    token_scopes = {"GET": TokenScope.MEMORY_READ}

    @extend_schema(operation_id="usage", responses=UsageOut)
    def get(self, request: Request) -> Response:
        """What the team uses against its quotas. A token bound to an agent sees the tokens of that agent only."""
        caller = self.caller(request)
        return Response(UsageOut(usage.of_team(caller.team, caller.agent)).data)
