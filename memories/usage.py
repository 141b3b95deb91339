"""What a team uses of what it may: for the usage page and the API."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date

from django.utils import timezone

from hindsight_site.accounts import limits, quotas
from hindsight_site.accounts.enums import Spent
from hindsight_site.accounts.limits import Policy
from hindsight_site.accounts.models import Agent, ApiToken, Team
from hindsight_site.accounts.quotas import Quota
from memories.actions import live_count

MONTHS = 6  # this one and those before it


@dataclass(frozen=True, slots=True)
class TokenUse:
    """Requests of one token that were let through since midnight UTC; None: they are not counted."""

    prefix: str
    name: str
    agent: str | None
    requests_today: int | None


@dataclass(frozen=True, slots=True)
class MonthUse:
    """What reflections used in one month (UTC). `cost_usd` is None when no price was set."""

    month: date  # its first day
    model_tokens: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Usage:
    """All of it. `rate_limits`: those that are switched on. `months`: newest first."""

    quotas: tuple[Quota, ...]
    rate_limits: tuple[Policy, ...]
    tokens: tuple[TokenUse, ...]
    months: tuple[MonthUse, ...]


def of_team(team: Team, agent: Agent | None = None) -> Usage:
    """Return what `team` uses. With `agent`, only the tokens of that agent are listed."""
    return Usage(
        quotas=(
            quotas.memories(live_count(team)),
            quotas.traces_today(team),
            quotas.model_tokens_this_month(team),
        ),
        rate_limits=tuple(policy for policy in limits.policies() if policy.is_on),
        tokens=_tokens(team, agent),
        months=_months(team),
    )


def _tokens(team: Team, agent: Agent | None) -> tuple[TokenUse, ...]:
    """The busiest first. A token that was revoked is listed while it has requests of today."""
    counted = limits.requests_today(team.pk)
    rows = ApiToken.objects.of(team).select_related("agent").order_by("name", "prefix")
    if agent is not None:
        rows = rows.filter(agent=agent)
    listed = [token for token in rows if token.revoked_at is None or token.pk in (counted or {})]
    uses = [
        TokenUse(
            prefix=token.prefix,
            name=token.name,
            agent=token.agent.slug if token.agent else None,
            requests_today=None if counted is None else counted.get(token.pk, 0),
        )
        for token in listed
    ]
    return tuple(sorted(uses, key=lambda use: -(use.requests_today or 0)))


def _months(team: Team) -> tuple[MonthUse, ...]:
    tokens = quotas.by_month(team, Spent.MODEL_TOKENS, MONTHS)
    costs = quotas.by_month(team, Spent.MODEL_COST, MONTHS)
    this_month = timezone.now().astimezone(UTC).date().replace(day=1)
    months = sorted({this_month, *tokens, *costs}, reverse=True)
    return tuple(
        MonthUse(month, tokens.get(month, 0), costs[month] / 1_000_000 if month in costs else None) for month in months
    )
