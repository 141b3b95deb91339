"""The weekly look across each scope's episodes."""

from __future__ import annotations

from datetime import datetime, timedelta

from hindsight_site.accounts.audit import Actor, system
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from memories.models import Scope
from reflection.actions import request_consolidation
from reflection.consolidation.gathering import MOST, recent
from reflection.models import Reflection

BY = system("schedule")
LOOKS_BACK = timedelta(days=7)
NOT_SOONER = timedelta(days=6)  # the hour of the schedule may drift; a week is not looked at twice
REASON = "the week's look across the scope"
FEWEST = 2  # episodes: one alone shows nothing that repeats


def request_due(now: datetime, *, team: Team | None = None, again: bool = False) -> int:
    """Queue the look of every scope that has new episodes; return how many. `again`: even where one was made."""
    teams = [team] if team else Team.objects.filter(suspended_at=None)
    return sum(_request_in(team, now, again) for team in teams)


def _request_in(team: Team, now: datetime, again: bool) -> int:
    with team_transaction(team):
        scopes = Scope.objects.of(team).select_related("agent").order_by("slug")
        return sum(request_in_scope(team, scope, now, again=again) is not None for scope in scopes)


def request_in_scope(
    team: Team, scope: Scope, now: datetime, *, by: Actor = BY, again: bool = False
) -> Reflection | None:  # fmt: skip
    """Queue the look across one scope's last week; None where there is nothing new to look at."""
    episodes = list(recent(team, scope, now - LOOKS_BACK)[:MOST])
    if len(episodes) < FEWEST or (not again and _looked(team, scope, now)):
        return None
    return request_consolidation(team=team, by=by, agent=scope.agent, scope=scope, episodes=episodes, reason=REASON)


def _looked(team: Team, scope: Scope, now: datetime) -> bool:
    looks = Reflection.objects.of(team).filter(scope=scope, trace=None, reason__startswith=REASON)
    return looks.filter(created_at__gt=now - NOT_SOONER).exists()
