"""The team's policy over REST: its numbers, their history, what they would do, and the sweeps that apply them."""

from __future__ import annotations

from dataclasses import asdict

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.enums import TokenScope
from hindsight_site.accounts.permissions import check_whole_team
from hindsight_site.api.fields import ObjectField
from hindsight_site.api.views import TokenView, expected_revision, page, read_input
from memories import actions, policy_table, team_policy
from memories.actions.policy import DEFAULTS, wanted
from memories.enums import Rule
from memories.lifecycle.preview import preview
from memories.models import PolicyVersion, SweepRun
from memories.policy_rows import GROUPS
from memories.policy_table import PRESETS

READ, ADMIN = TokenScope.MEMORY_READ, TokenScope.ADMIN
WHAT = "change the policy of the whole team or try one out"
ROW_FIELDS = ("key", "label", "unit", "help", "default", "low", "high", "whole", "choices")


class NumberOut(serializers.Serializer):
    key = serializers.CharField()
    group = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment] # a field
    unit = serializers.CharField(allow_blank=True)
    help = serializers.CharField()
    value = serializers.FloatField()
    default = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    whole = serializers.BooleanField()
    choices = serializers.ListField(child=serializers.CharField(), help_text="The words for 0, 1, 2 …, if any.")


class PresetOut(serializers.Serializer):
    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment] # a field
    help = serializers.CharField()
    values = serializers.DictField(child=serializers.FloatField(), help_text="What differs from the defaults.")


class PolicyOut(serializers.Serializer):
    version = serializers.IntegerField(help_text="Counts the changes; 0 is the defaults.")
    preset = serializers.CharField(allow_blank=True, help_text="The preset that the numbers are, if any.")
    changed_at = serializers.DateTimeField(allow_null=True)
    changed_by = serializers.CharField(allow_null=True)
    values = serializers.DictField(child=serializers.FloatField())
    numbers = NumberOut(many=True)
    presets = PresetOut(many=True)


class PolicyChange(serializers.Serializer):
    values = ObjectField(required=False, default=dict, help_text="The numbers to set, by key.")
    preset = serializers.CharField(
        max_length=20, required=False, allow_blank=True, default="", help_text="Start from this preset, not from now."
    )
    note = serializers.CharField(max_length=300, required=False, allow_blank=True, default="")
    revision = serializers.IntegerField(
        min_value=0, max_value=2**31 - 1, required=False, help_text="The version that you read."
    )


class PreviewIn(serializers.Serializer):
    values = ObjectField(required=False, default=dict)
    preset = serializers.CharField(max_length=20, required=False, allow_blank=True, default="")


class ExampleOut(serializers.Serializer):
    memory = serializers.UUIDField()
    content = serializers.CharField(allow_blank=True)
    reason = serializers.CharField()


class EffectOut(serializers.Serializer):
    rule = serializers.ChoiceField(choices=Rule.choices)
    label = serializers.CharField()  # type: ignore[assignment] # a field
    count = serializers.IntegerField()
    examples = ExampleOut(many=True)


class PreviewOut(serializers.Serializer):
    effects = EffectOut(many=True)
    changes = serializers.IntegerField()
    examined = serializers.IntegerField()
    total = serializers.IntegerField()
    spared = serializers.IntegerField(help_text="Would leave, were they not pinned, approved or restored lately.")


class VersionOut(serializers.ModelSerializer):
    version = serializers.IntegerField(source="number")
    changed_by = serializers.CharField(source="actor_label")

    class Meta:
        model = PolicyVersion
        fields = ["version", "preset", "values", "note", "changed_by", "created_at"]


class RestoreIn(serializers.Serializer):
    to = serializers.IntegerField(min_value=0, max_value=2**31 - 1, help_text="The version to go back to; 0: defaults.")
    note = serializers.CharField(max_length=300, required=False, allow_blank=True, default="")
    revision = serializers.IntegerField(min_value=0, max_value=2**31 - 1, required=False)


class SweepOut(serializers.ModelSerializer):
    started_at = serializers.DateTimeField(source="created_at")
    state = serializers.ChoiceField(choices=["running", "paused", "interrupted", "finished"])
    changes = serializers.IntegerField()
    by = serializers.CharField(source="actor_label")

    class Meta:
        model = SweepRun
        fields = [
            "id", "state", "started_at", "finished_at", "by", "policy_version", "total", "examined", "changed",
            "changes", "spared",
        ]  # fmt: skip


def told(version: PolicyVersion | None) -> Response:
    """The whole policy, its version as ETag."""
    values = team_policy.values_of(version)
    number = version.number if version else DEFAULTS
    numbers = [
        {**{f: getattr(row, f) for f in ROW_FIELDS}, "group": group.name, "value": values[row.key]}
        for group in GROUPS
        for row in group.rows
    ]
    body = {
        "version": number,
        "preset": policy_table.preset_of(values),
        "changed_at": version.created_at if version else None,
        "changed_by": version.actor_label if version else None,
        "values": values,
        "numbers": numbers,
        "presets": [asdict(preset) for preset in PRESETS.values()],
    }
    return Response(body, headers={"ETag": f'"{number}"'})


class PolicyView(TokenView):
    token_scopes = {"GET": READ, "PATCH": ADMIN}

    @extend_schema(operation_id="policy_read", responses=PolicyOut)
    def get(self, request: Request) -> Response:
        """Every number of the team's policy with its meaning, its limits and its default."""
        return told(team_policy.current(self.caller(request).team))

    @extend_schema(operation_id="policy_change", request=PolicyChange, responses=PolicyOut)
    def patch(self, request: Request) -> Response:
        """Set some numbers. Send `If-Match: "<version>"` to be safe from lost updates."""
        caller = self.caller(request)
        check_whole_team(caller.agent, WHAT)
        body = read_input(PolicyChange, request.data)
        version = actions.change_policy(
            team=caller.team, by=caller.actor, changes=body["values"], preset=body["preset"], note=body["note"],
            expected_version=expected_revision(request, body),
        )  # fmt: skip
        return told(version)


class PreviewView(TokenView):
    token_scopes = {"POST": ADMIN}

    @extend_schema(operation_id="policy_preview", request=PreviewIn, responses=PreviewOut)
    def post(self, request: Request) -> Response:
        """What the next sweep would do: under the policy as it is, or with these numbers. Changes nothing."""
        caller = self.caller(request)
        check_whole_team(caller.agent, WHAT)
        body = read_input(PreviewIn, request.data or {})
        values = wanted(team_policy.current(caller.team), body["values"], body["preset"])
        found = preview(team=caller.team, life=policy_table.policy_of(values).life, now=timezone.now())
        return Response({**asdict(found), "changes": found.changes})


class RestoreView(TokenView):
    token_scopes = {"POST": ADMIN}

    @extend_schema(operation_id="policy_restore", request=RestoreIn, responses=PolicyOut)
    def post(self, request: Request) -> Response:
        """Go back to an earlier version; that is a new version, and the history keeps all."""
        caller = self.caller(request)
        check_whole_team(caller.agent, WHAT)
        body = read_input(RestoreIn, request.data)
        version = actions.restore_policy(
            team=caller.team, by=caller.actor, number=body["to"], note=body["note"],
            expected_version=expected_revision(request, body),
        )  # fmt: skip
        return told(version)


class VersionsView(TokenView):
    token_scopes = {"GET": READ}

    @extend_schema(operation_id="policy_versions", responses=VersionOut(many=True))
    def get(self, request: Request) -> Response:
        """Who changed the policy when and to what, newest first."""
        rows = PolicyVersion.objects.of(self.caller(request).team)
        return page(request, rows, lambda found: VersionOut(found, many=True).data, ordering=("-number", "-id"))


class SweepsView(TokenView):
    token_scopes = {"GET": READ}

    @extend_schema(operation_id="sweeps", responses=SweepOut(many=True))
    def get(self, request: Request) -> Response:
        """The runs of the rules of life in the last 30 days, newest first."""
        rows = SweepRun.objects.of(self.caller(request).team)
        return page(request, rows, lambda found: SweepOut(found, many=True).data)
