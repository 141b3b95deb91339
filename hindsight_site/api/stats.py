"""How the team's memory is doing, in numbers: those of the overview page, from the same functions."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site import overview
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.permissions import check_whole_team
from hindsight_site.api.views import TokenView
from reflection.api.reviews import ShareOut, share_body
from reflection.enums import ReflectionStatus
from reflection.review import queries as review


class LiveOut(serializers.Serializer):
    """Memories that can be recalled now."""

    total = serializers.IntegerField()
    flagged = serializers.IntegerField(help_text="Flagged for review.")
    by_tier = serializers.DictField(child=serializers.IntegerField())
    by_kind = serializers.DictField(child=serializers.IntegerField())


class AcceptanceOut(serializers.Serializer):
    """Verdicts on the random sample: approved out of approved, demoted and edited."""

    this_week = ShareOut(allow_null=True, help_text="So far; null before the first verdict of the week.")
    past_weeks = ShareOut(allow_null=True, help_text="The last four batches that ended, together.")


class RecallsOut(serializers.Serializer):
    total = serializers.IntegerField()
    matched = serializers.IntegerField()
    match_rate = serializers.FloatField(allow_null=True, help_text="0..1; null without any.")


class UseOut(serializers.Serializer):
    """What became of recalled memories, as far as agents told."""

    told = serializers.IntegerField(help_text="Recalled memories with feedback.")
    adopted = serializers.IntegerField()
    adopted_share = serializers.FloatField(allow_null=True, help_text="adopted / told, 0..1.")
    judged = serializers.IntegerField(help_text="Adopted, and the end of the task was told.")
    succeeded = serializers.IntegerField()
    success_share = serializers.FloatField(allow_null=True, help_text="succeeded / judged, 0..1.")


class RunsOut(serializers.Serializer):
    total = serializers.IntegerField()
    by_status = serializers.DictField(child=serializers.IntegerField())
    cost_usd = serializers.FloatField(allow_null=True, help_text="Null: no price is set, or rules did the work.")


class RefusedOut(serializers.Serializer):
    """Why candidates were refused."""

    reason = serializers.CharField()
    in_words = serializers.CharField()
    count = serializers.IntegerField()


class StatsOut(serializers.Serializer):
    days = serializers.IntegerField(help_text="How far recalls, use, reflections and refusals look back.")
    at = serializers.DateTimeField()
    live = LiveOut()
    by_status = serializers.DictField(child=serializers.IntegerField(), help_text="All memories there are.")
    acceptance = AcceptanceOut()
    recalls = RecallsOut()
    use = UseOut()
    reflections = RunsOut()
    refused = RefusedOut(many=True)


def stats_of(team: Team, now: datetime) -> dict[str, Any]:
    """The numbers as JSON values."""
    since = now - timedelta(days=overview.DAYS)
    live, recalls = overview.live_memories(team), overview.recalls(team, since, [])
    use, runs = overview.feedback(team, since), overview.reflections(team, since)
    states = {status: count for status, count, _ in runs["states"]}
    return {
        "days": overview.DAYS,
        "at": now,
        "live": {
            "total": live["total"],
            "flagged": live["flagged"],
            "by_tier": {str(tier): count for tier, count in live["tiers"]},
            "by_kind": {str(row["kind"]): row["total"] for row in live["table"]},
        },
        "by_status": overview.by_status(team),
        "acceptance": {
            "this_week": share_body(overview.this_week(team, now)),
            "past_weeks": share_body(review.pooled(review.batch_lines(team, now, overview.WEEKS))),
        },
        "recalls": {name: recalls[name] for name in ("total", "matched", "match_rate")},
        "use": {
            "told": use["told"], "adopted": use["used"], "adopted_share": use["used_share"],
            "judged": use["judged"], "succeeded": use["succeeded"], "success_share": use["success_share"],
        },
        "reflections": {
            "total": runs["total"],
            "by_status": {status: states.get(status, 0) for status in ReflectionStatus.values},
            "cost_usd": runs["cost"],
        },
        "refused": [
            {"reason": reason, "in_words": words, "count": count}
            for reason, words, count in overview.refused(team, since)
        ],
    }  # fmt: skip


class StatsView(TokenView):
    token_scopes = {"GET": TokenScope.MEMORY_READ}

    @extend_schema(operation_id="stats", responses=StatsOut)
    def get(self, request: Request) -> Response:
        """How the team's memory is doing: what is live, how it is judged, recalled and used, what reflection costs."""
        caller = self.caller(request)
        check_whole_team(caller.agent, "read the numbers of the whole team")
        return Response(stats_of(caller.team, timezone.now()))
