"""How a run of looking back ends: its end state and its memories in one transaction that holds the fence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from hindsight_site.accounts import quotas
from hindsight_site.accounts.enums import Spent
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from reflection import asker, lease
from reflection.announcing import reflection_ended
from reflection.distill.endpoint import ModelEndpoint
from reflection.distill.errors import DistillError
from reflection.enums import ReflectionStatus
from reflection.forms import Distilled
from reflection.lease import Claim, LeaseLost
from reflection.models import Reflection, ReflectionResult

BY_RULES = "by rules, this month's model tokens are used up"
BACKOFF = (timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=5))

Write = Callable[[Reflection], list[ReflectionResult]]


def finish(claim: Claim, distilled: Distilled, write: Write, refused: list[dict[str, str]], *, by_rules: bool) -> str:
    """Write the memories and the end state, both or neither, and return the state. Raises `LeaseLost`, `AskerGone`.

    `by_rules`: there is a model, but the team has used up its tokens; the reason says so.
    """
    with team_transaction(claim.team):
        reflection = lease.held(claim)
        asker.check(reflection)
        written = write(reflection)
        reflection.status = end_state(written, refused)
        reflection.distiller, reflection.model = distilled.distiller, distilled.model
        reflection.prompt_version = distilled.prompt_version
        reflection.tokens_in += distilled.tokens_in  # failed attempts before this one cost too
        reflection.tokens_out += distilled.tokens_out
        reflection.cost_usd, reflection.rejected = _sum(reflection.cost_usd, distilled.cost_usd), refused
        if by_rules:
            reflection.reason = f"{reflection.reason}; {BY_RULES}".lstrip("; ")[:300]
        reflection.error, reflection.lease_until, reflection.finished_at = "", None, timezone.now()
        reflection.save()
        reflection_ended(reflection)
        return reflection.status


def _sum(before: float | None, now: float | None) -> float | None:
    """What all attempts cost; None while no price is known."""
    return now if before is None else before + (now or 0.0)


def end_state(written: list[ReflectionResult], refused: list[dict[str, str]]) -> str:
    """What became of a run, from what it wrote and what it refused."""
    if any(result.effect != ReflectionResult.Effect.CONFIRMED for result in written):
        return ReflectionStatus.STORED
    if written or not refused:
        return ReflectionStatus.NOTHING_NEW
    return ReflectionStatus.REJECTED


def fail(
    claim: Claim,
    message: str,
    *,
    retryable: bool,
    wait: float | None = None,
    spent: DistillError | None = None,
) -> str:
    """Queue the run again after a pause, or end it as failed. What it looked at stays either way."""
    try:
        with team_transaction(claim.team):
            reflection = lease.held(claim)
            again = retryable and reflection.attempts < settings.REFLECTION_MAX_ATTEMPTS
            pause = timedelta(seconds=wait) if wait else BACKOFF[min(reflection.attempts, len(BACKOFF)) - 1]
            reflection.status = ReflectionStatus.QUEUED if again else ReflectionStatus.FAILED
            reflection.run_after = timezone.now() + pause if again else reflection.run_after
            reflection.finished_at = None if again else timezone.now()
            reflection.error, reflection.lease_until = message[:500], None
            if spent is not None:
                reflection.tokens_in += spent.tokens_in
                reflection.tokens_out += spent.tokens_out
                reflection.cost_usd = _sum(reflection.cost_usd, spent.cost_usd)
            reflection.save()
            if not again:
                reflection_ended(reflection)
            return reflection.status
    except LeaseLost:
        return ""


def counted(team: Team, distil: Callable[[], Distilled], endpoint: ModelEndpoint | None) -> Distilled:
    """Distil, and count what a model used at once, whatever becomes of its answer. Raises `DistillError`."""
    try:
        distilled = distil()
    except DistillError as error:
        _count(team, error.tokens_in, error.tokens_out, endpoint)
        raise
    _count(team, distilled.tokens_in, distilled.tokens_out, endpoint)
    return distilled


def _count(team: Team, tokens_in: int, tokens_out: int, endpoint: ModelEndpoint | None) -> None:
    if endpoint is None or not tokens_in + tokens_out:
        return
    # Dollars per million tokens are millionths of a dollar per token.
    cost = round(tokens_in * endpoint.price_in + tokens_out * endpoint.price_out)
    with team_transaction(team):
        quotas.spend(team, Spent.MODEL_TOKENS, tokens_in + tokens_out)
        quotas.spend(team, Spent.MODEL_COST, cost)
