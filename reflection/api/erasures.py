"""Erasures over REST: look what would go, then ask for it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.api.jobs import JobOut, accepted
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.accounts.permissions import check_whole_team
from hindsight_site.api.fields import TextField
from hindsight_site.api.idempotency import idempotent
from hindsight_site.api.views import TokenView, read_input
from reflection.erasing.asking import CONFIRMATION, request_erasure
from reflection.erasing.preview import preview
from reflection.erasing.targets import MAX_CHARS, MAX_IDENTIFIERS, Target, TargetKind, target_of


class TargetIn(serializers.Serializer):
    target = serializers.ChoiceField(choices=TargetKind.choices)
    values = serializers.ListField(
        child=TextField(max_length=MAX_CHARS),
        min_length=1,
        max_length=MAX_IDENTIFIERS,
        help_text="A person's names and addresses; or the one agent, session id, trace id or text.",
    )


class ErasureIn(TargetIn):
    confirmation = serializers.CharField(max_length=40, help_text=f'The word "{CONFIRMATION}".')


class ErasureExampleOut(serializers.Serializer):
    kind = serializers.ChoiceField(choices=["memory", "trace"])
    id = serializers.UUIDField()
    text = serializers.CharField()


class ErasurePreviewOut(serializers.Serializer):
    deleted = serializers.DictField(child=serializers.IntegerField(), help_text="Rows that go, by table.")
    cut = serializers.DictField(child=serializers.IntegerField(), help_text="Rows that stay without it, by table.")
    examples = ErasureExampleOut(many=True)


def target_in(wanted: dict[str, Any]) -> Target:
    """The target of a checked payload. Raises `Invalid`."""
    return target_of(wanted["target"], wanted["values"])


class ErasuresView(TokenView):
    token_scopes = {"POST": TokenScope.ADMIN}

    @extend_schema(operation_id="erasures_request", request=ErasureIn, responses={202: JobOut})
    @idempotent
    def post(self, request: Request) -> Response:
        """Erase a person, an agent, a session, a trace or a text for good, with what rests solely on it."""
        caller = self.caller(request)
        check_whole_team(caller.agent, "erase what the team knows")
        wanted = read_input(ErasureIn, request.data)
        job = request_erasure(
            team=caller.team, by=caller.actor, target=target_in(wanted), confirmation=wanted["confirmation"],
            token=caller.token,
        )  # fmt: skip
        return accepted(job)


class ErasurePreviewView(TokenView):
    token_scopes = {"POST": TokenScope.ADMIN}

    @extend_schema(operation_id="erasures_preview", request=TargetIn, responses=ErasurePreviewOut)
    def post(self, request: Request) -> Response:
        """What an erasure would take: counts by table and examples. Changes nothing."""
        caller = self.caller(request)
        check_whole_team(caller.agent, "erase what the team knows")
        return Response(ErasurePreviewOut(preview(caller.team, target_in(read_input(TargetIn, request.data)))).data)
