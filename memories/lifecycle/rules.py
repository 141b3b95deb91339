"""The rules of life: a memory's numbers and the team's policy in, a decision with its reason out. Pure.

How the table of the domain is read:

- Of the rules for age the one for the memory's kind goes before the one for its tier: a fact, preference
  or relation follows its own, a lesson is archived by its own, episodes follow the episodic one. Semantic
  memories do not age. Working memory knows only its own time.
- A lesson that was tried often enough is judged by its success rate and not by its confidence: when it
  fails it waits for a person, where the rule for confidence would take it away unseen.
- A hit is a recall that handed the memory out. That another source said the same, or that a person
  restored it, counts like one. What had faded with age is lifted by the next hit, what had faded for want
  of use by the next adoption, what was flagged by a verdict.
- Down-weighting is a state and not an act: `Vitals.fades` names each cause with its factor (`unused`: the
  amount that is taken off), and the weight follows from it. So a cause counts once, however often it is
  looked at, and a changed policy changes the weight.
- Pinned memories, and those that a person approved or restored lately, neither fade nor leave. Approved
  and restored ones are flagged all the same when they fail; a pinned one is flagged and keeps its weight.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memories.enums import FailureClass, Kind, Rule, Status, Tier
from memories.policy import Life

Fades = dict[str, float]
FACT_KINDS = frozenset({Kind.FACT, Kind.PREFERENCE, Kind.RELATION})
LIVE = frozenset({Status.CANDIDATE, Status.ACTIVE})
# Of several causes that are new at once, the first is the one that is told.
CAUSES = (Rule.FAILING, Rule.TRANSIENT, Rule.IDLE, Rule.UNUSED)


@dataclass(frozen=True, slots=True)
class Vitals:
    """What the rules look at. All moments are aware."""

    tier: str
    kind: str
    status: str
    created_at: datetime
    failure_class: str = FailureClass.NONE
    confidence: float = 0.5
    weight: float = 1.0
    fades: Fades = field(default_factory=dict)
    access_count: int = 0
    last_accessed_at: datetime | None = None
    renewed_at: datetime | None = None
    restored_at: datetime | None = None
    unused_streak: int = 0
    reuse_count: int = 0
    reuse_success_count: int = 0
    judged_reuse_count: int = 0
    judged_reuse_success_count: int = 0
    needs_review: bool = False
    pinned: bool = False
    approved_at: datetime | None = None
    expires_at: datetime | None = None
    valid_until: datetime | None = None
    archived_at: datetime | None = None
    archived_by: str = ""

    @property
    def last_hit(self) -> datetime:
        """When it was last handed out or vouched for; before the first time, when it came in."""
        return max(moment for moment in (self.created_at, self.last_accessed_at, self.renewed_at) if moment)


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to happen. `to` is the new status, empty when it stays; `fades` and `weight` hold afterwards."""

    rule: Rule
    reason: str
    fades: Fades
    weight: float
    to: str = ""
    flag: bool = False  # a person is to look at it


def weight_of(fades: Fades) -> float:
    """The weight that the causes leave, in 0..1: the product of the factors less what `unused` takes off."""
    weight = 1.0
    for cause, factor in fades.items():
        if cause != Rule.UNUSED:
            weight *= factor
    return min(1.0, max(0.0, weight - fades.get(Rule.UNUSED, 0.0)))


def decide(vitals: Vitals, life: Life, now: datetime) -> Decision | None:
    """What a sweep at `now` does with a memory; None when nothing."""
    rule = None if is_exempt(vitals, life, now) else leaving(vitals, life, now)
    if rule is not None:
        gone = rule in (Rule.WORKING_OVER, Rule.LONG_ARCHIVED)
        to = Status.FORGOTTEN if gone else Status.ARCHIVED
        return Decision(rule, _why(rule, vitals, life, now), vitals.fades, vitals.weight, to=to)
    if vitals.status not in LIVE or vitals.tier == Tier.WORKING:
        return None
    fades = fades_of(vitals, life, now)
    flag = is_failing(vitals, life)
    if fades == vitals.fades and (vitals.needs_review or not flag):
        return None
    told = _told(vitals.fades, fades, flag=flag and not vitals.needs_review)
    return Decision(told, _why(told, vitals, life, now), fades, weight_of(fades), flag=flag)


def spared(vitals: Vitals, life: Life, now: datetime) -> Rule | None:
    """The rule by which an exempt memory would have left; None when it is not exempt or would have stayed."""
    return leaving(vitals, life, now) if is_exempt(vitals, life, now) else None


def is_exempt(vitals: Vitals, life: Life, now: datetime) -> bool:
    """Whether no rule may take it away: pinned, or approved or restored lately."""
    return (
        vitals.pinned
        or _within(vitals.approved_at, life.approved_exempt, now)
        or _within(vitals.restored_at, life.restored_exempt, now)
    )


def _within(moment: datetime | None, span: timedelta, now: datetime) -> bool:
    return moment is not None and now - moment < span


def leaving(vitals: Vitals, life: Life, now: datetime) -> Rule | None:
    """The rule by which a memory leaves its place, exempt or not."""
    if vitals.status == Status.ARCHIVED:
        return _deletion(vitals, life, now)
    if vitals.status not in LIVE:
        return None
    if vitals.tier == Tier.WORKING:
        ends = vitals.expires_at or vitals.created_at + life.working_ttl
        return Rule.WORKING_OVER if ends <= now else None
    if any(moment is not None and moment <= now for moment in (vitals.expires_at, vitals.valid_until)):
        return Rule.EXPIRED
    if vitals.confidence < life.least_confidence and not is_tried(vitals, life):
        return Rule.LOW_CONFIDENCE
    return _idle(vitals, life, now)


def _deletion(vitals: Vitals, life: Life, now: datetime) -> Rule | None:
    if vitals.archived_by != Rule.EPISODE_IDLE or vitals.archived_at is None:
        return None
    idle_since = max(vitals.archived_at, vitals.last_hit)
    return Rule.LONG_ARCHIVED if now - idle_since >= life.episodic_delete_after else None


def _idle(vitals: Vitals, life: Life, now: datetime) -> Rule | None:
    if vitals.tier == Tier.SEMANTIC:
        return None
    idle = now - vitals.last_hit
    if vitals.kind in FACT_KINDS:
        over = idle >= life.fact_archive_after and vitals.access_count < life.fact_enough_hits
        return Rule.FACT_IDLE if over else None
    if vitals.kind == Kind.EXPERIENCE:
        return Rule.LESSON_IDLE if idle >= life.lesson_archive_after else None
    return Rule.EPISODE_IDLE if idle >= life.episodic_archive_after else None


def fades_of(vitals: Vitals, life: Life, now: datetime) -> Fades:
    """The causes that take from a live memory's weight at `now`."""
    fades: Fades = {}
    if not is_exempt(vitals, life, now):
        if vitals.failure_class == FailureClass.TRANSIENT and now - vitals.created_at >= life.transient_after:
            fades[Rule.TRANSIENT.value] = life.transient_factor
        if (factor := _idle_factor(vitals, life, now)) is not None:
            fades[Rule.IDLE.value] = factor
        if vitals.kind == Kind.EXPERIENCE and vitals.unused_streak >= life.unused_streak:
            fades[Rule.UNUSED.value] = round(life.unused_step * (vitals.unused_streak // life.unused_streak), 6)
    waiting = Rule.FAILING in vitals.fades and vitals.needs_review
    if (waiting or is_failing(vitals, life)) and not vitals.pinned:
        fades[Rule.FAILING.value] = life.failing_factor
    return fades


def _idle_factor(vitals: Vitals, life: Life, now: datetime) -> float | None:
    if vitals.tier == Tier.SEMANTIC:
        return None
    idle = now - vitals.last_hit
    if vitals.kind in FACT_KINDS:
        fading = idle >= life.fact_fade_after and vitals.access_count < life.fact_enough_hits
        return life.fact_fade_factor if fading else None
    return life.episodic_fade_factor if idle >= life.episodic_fade_after else None


def is_tried(vitals: Vitals, life: Life) -> bool:
    """Whether a lesson was adopted often enough since it was last judged to go by its success rate."""
    return vitals.kind == Kind.EXPERIENCE and _uses(vitals) >= life.failing_uses


def is_failing(vitals: Vitals, life: Life) -> bool:
    """Whether a lesson was tried, and mostly in vain."""
    successes = max(0, vitals.reuse_success_count - vitals.judged_reuse_success_count)
    return is_tried(vitals, life) and successes < life.failing_rate * _uses(vitals)


def _uses(vitals: Vitals) -> int:
    """How often it was adopted since a person last judged it, with a known end."""
    return max(0, vitals.reuse_count - vitals.judged_reuse_count)


def _told(before: Fades, after: Fades, *, flag: bool) -> Rule:
    """The rule that a change of causes is counted under."""
    if flag:
        return Rule.FAILING
    grown = [cause for cause in CAUSES if _taken(after, cause) > _taken(before, cause)]
    return grown[0] if grown else Rule.LIFTED


def _taken(fades: Fades, cause: Rule) -> float:
    """How much a cause takes: comparable before and after."""
    nothing = 0.0 if cause == Rule.UNUSED else 1.0
    value = fades.get(cause, nothing)
    return value if cause == Rule.UNUSED else 1.0 - value


def _why(rule: Rule, vitals: Vitals, life: Life, now: datetime) -> str:
    """The reason in words, with the numbers that decided."""
    idle = (now - vitals.last_hit).days
    reasons = {
        Rule.WORKING_OVER: "its session time is over",
        Rule.EXPIRED: "it is no longer valid",
        Rule.LOW_CONFIDENCE: f"confidence {vitals.confidence:.2f} is below {life.least_confidence:g}",
        Rule.LONG_ARCHIVED: f"archived without a hit for {life.episodic_delete_after.days} days",
        Rule.FAILING: f"adopted {vitals.reuse_count} times, {vitals.reuse_success_count} succeeded",
        Rule.TRANSIENT: "a passing failure of some time ago",
        Rule.UNUSED: f"recalled {vitals.unused_streak} times in a row and never adopted",
        Rule.LIFTED: "what it had faded for is over",
    }
    return reasons.get(rule, f"no hit for {idle} days")
