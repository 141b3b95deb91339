"""The forms of the token API: what comes in, what goes out."""

from __future__ import annotations

from rest_framework import serializers

from hindsight_site.accounts.actions import MAX_GRACE
from hindsight_site.accounts.credentials import BadCredential, check_live
from hindsight_site.accounts.enums import Audience, TokenScope
from hindsight_site.accounts.models import ApiToken
from hindsight_site.api.fields import AwareDateTimeField


class ExchangeIn(serializers.Serializer):
    scope = serializers.CharField(
        max_length=200, required=False, help_text="Space-separated; what the token may when left out."
    )
    audience = serializers.ChoiceField(choices=Audience.choices, default=Audience.REST)


class ExchangeOut(serializers.Serializer):
    access_token = serializers.CharField()
    token_type = serializers.CharField(help_text="Bearer")
    expires_in = serializers.IntegerField(help_text="seconds")
    scope = serializers.CharField(help_text="Space-separated.")


class TokenOut(serializers.ModelSerializer):
    agent: serializers.SlugRelatedField = serializers.SlugRelatedField(
        slug_field="slug", read_only=True, allow_null=True
    )
    works = serializers.SerializerMethodField(help_text="Whether it opens anything at this moment.")

    class Meta:
        model = ApiToken
        fields = [
            "prefix", "name", "agent", "scopes", "works", "created_at", "expires_at", "revoked_at",
            "last_used_at",
        ]  # fmt: skip

    def get_works(self, token: ApiToken) -> bool:
        try:
            check_live(token)
        except BadCredential:
            return False
        return True


class TokenMade(TokenOut):
    secret = serializers.CharField(
        allow_null=True, help_text="Shown in this answer only; null when an Idempotency-Key replays it."
    )

    class Meta(TokenOut.Meta):
        fields = [*TokenOut.Meta.fields, "secret"]


class TokenIn(serializers.Serializer):
    name = serializers.CharField(max_length=120)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=TokenScope.choices), min_length=1, max_length=20
    )
    agent = serializers.CharField(
        max_length=60, required=False, allow_null=True, default=None,
        help_text="The agent that the token speaks for; none: it is the team's own.",
    )  # fmt: skip
    expires_at = AwareDateTimeField(required=False, allow_null=True, default=None)


class TokenChange(serializers.Serializer):
    name = serializers.CharField(max_length=120, required=False)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=TokenScope.choices), min_length=1, max_length=20, required=False
    )
    expires_at = AwareDateTimeField(required=False, allow_null=True)


class RotateIn(serializers.Serializer):
    grace_seconds = serializers.IntegerField(
        min_value=0, max_value=int(MAX_GRACE.total_seconds()), default=0,
        help_text="How much longer the old secret works.",
    )  # fmt: skip
