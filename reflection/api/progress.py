"""How far looking back is, over REST: for whoever has sent many traces."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.enums import TokenScope
from hindsight_site.api.views import TokenView
from reflection import progress


class BatchProgressOut(serializers.Serializer):
    """The reflections since the queue was last empty; for a token bound to an agent, that agent's."""

    begun_at = serializers.DateTimeField(allow_null=True, help_text="Null: none in the last 24 hours.")
    total = serializers.IntegerField()
    waiting = serializers.IntegerField()
    retrying = serializers.IntegerField(help_text="Of those waiting: they failed, and wait for their next attempt.")
    running = serializers.IntegerField()
    done = serializers.IntegerField(help_text="Ended with an answer: stored, nothing new, or all rejected.")
    dead = serializers.IntegerField(help_text="Failed for good; the traces are kept.")
    by_status = serializers.DictField(child=serializers.IntegerField())
    stuck = serializers.IntegerField(help_text="Due or at work far too long: somebody should look at the worker.")
    oldest_waiting_seconds = serializers.FloatField()
    per_minute = serializers.FloatField(allow_null=True, help_text="Null when nothing is open or nothing ended yet.")
    seconds_left = serializers.FloatField(allow_null=True, help_text="If the rest goes as fast. Null without a ground.")


class ProgressView(TokenView):
    token_scopes = {"GET": TokenScope.MEMORY_READ}

    @extend_schema(operation_id="reflections_progress", responses=BatchProgressOut)
    def get(self, request: Request) -> Response:
        """What waits, runs, is done and is dead since the queue was last empty, and how long the rest will take."""
        caller = self.caller(request)
        return Response(BatchProgressOut(progress.batch(caller.team, caller.agent)).data)
