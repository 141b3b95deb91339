"""What the mails about the review say: counts, times and a link, and never a memory's text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.urls import reverse

from hindsight_site.accounts import mail_choices
from hindsight_site.accounts.enums import MailKind
from hindsight_site.accounts.mailing import Letter
from hindsight_site.accounts.models import Team, User
from reflection.enums import BatchStatus, Decision, ItemState
from reflection.models import ReviewBatch, Verdict
from reflection.review import metric_queries, metrics, pages, queries, turns
from reflection.review.metrics import WeekRate
from reflection.review.statistics import Share, minutes_left

TO_REVIEWERS = (MailKind.REVIEW_OPENED, MailKind.REVIEW_REMINDER)  # the others go to owners and admins
DRIFT_WEEKS = 12  # what the usual range is made of


@dataclass(frozen=True, slots=True)
class Drift:
    """A week that fell out of the usual range, and what is usual: the share of all weeks together, 0..1."""

    week: WeekRate
    rate: Share
    usual: float


def compose(team: Team, person: User, kind: str, about: str, now: datetime) -> Letter | None:
    """Return what to write to this person; None when there is nothing to say (any more)."""
    if kind in TO_REVIEWERS:
        return _review(team, person, kind, about, now)
    if kind == MailKind.REVIEW_DRIFT:
        return _drift(team, person, about, now)
    return _sensitive(team, person, about)


def drift_of(team: Team, week: str, now: datetime) -> Drift | None:
    """How a closed week broke the alert rule downwards; None when it did not, or too little was judged."""
    weeks, _ = metric_queries.weeks_of(team, now, DRIFT_WEEKS)
    if week not in weeks:
        return None
    batches = metric_queries.batches_of(team, weeks, now)
    verdicts = metric_queries.verdicts_of(team, batches, metric_queries.Narrowing())
    rates = metrics.weekly(weeks, metric_queries.judged_of(team, verdicts))
    found = next(one for one in rates if one.week == week)
    enough = [one.rate for one in rates if one.rate is not None and one.rate.is_enough]
    if not found.alert or found.rate is None:
        return None
    usual = sum(rate.hits for rate in enough) / sum(rate.n for rate in enough)
    return Drift(found, found.rate, usual) if found.rate.share < usual else None


def _review(team: Team, person: User, kind: str, week: str, now: datetime) -> Letter | None:
    batch = ReviewBatch.objects.of(team).filter(week=week, status=BatchStatus.OPEN, closes_at__gt=now).first()
    if batch is None:
        return None
    standing = turns.turns_of(team, person, batch, now)
    mine = sum(place.mine_to_do for place in standing.places)
    if not mine:
        return None
    total = len(standing.places) - standing.count(ItemState.VOID)
    decided = total - standing.count(ItemState.PENDING)
    minutes = _amount(minutes_left(queries.pace(team, person), mine), "minute")
    waits = f"{_amount(mine, 'memory', 'memories')} await{'s' if mine == 1 else ''} you"
    if kind == MailKind.REVIEW_OPENED:
        subject = f"{waits} in this week’s review, about {minutes}"
        first = f"{pages.week_title(week)} of {team.name} is open for review: {_amount(total, 'memory', 'memories')}."
    else:
        subject = f"The review closes soon: {waits}, about {minutes}"
        first = f"{decided} of {total} memories in this week’s review of {team.name} are decided."
    told = f"{waits}. At your pace that takes about {minutes}. Each is one question: true, and worth keeping?"
    closes = f"The review closes on {pages.closing(batch, team)}; what is not decided then stays as it is."
    return _letter(person, kind, team, subject, (first, told, closes), "review", f"Review them in {team.name}")


def _drift(team: Team, person: User, week: str, now: datetime) -> Letter | None:
    drift = drift_of(team, week, now)
    if drift is None:
        return None
    rate = drift.rate
    subject = f"Fewer memories accepted than usual: {rate.share:.0%} in {pages.week_title(week).lower()}"
    lines = (
        f"In {pages.week_title(week).lower()} of {team.name}, {rate.share:.0%} of the random sample was accepted: "
        f"{rate.hits} of {rate.n}; with so many judged the true share lies between {rate.low:.0%} and {rate.high:.0%}. "
        f"Over the last {DRIFT_WEEKS} weeks it was {drift.usual:.0%}.",
        f"The rule that this breaks: {drift.week.alert}. Chance alone seldom does that, so it is worth a look at what "
        "changed: a prompt, a model, a new agent or another kind of work.",
    )
    return _letter(
        person, MailKind.REVIEW_DRIFT, team, subject, lines, "review-metrics", f"See the metrics of {team.name}"
    )


def _sensitive(team: Team, person: User, verdict_id: str) -> Letter | None:
    verdicts = Verdict.objects.of(team).filter(pk=verdict_id, decision=Decision.SENSITIVE, undone_at=None)
    verdict = verdicts.select_related("reviewer", "item").first()
    if verdict is None or verdict.reviewer_id == person.pk:
        return None
    who = verdict.reviewer or "Somebody"
    lines = (
        f"{who} flagged a memory of {team.name} as sensitive: it may hold personal data or a secret.",
        "It is held back and reaches no agent. Somebody who manages the team should decide whether it is forgotten for "
        "good, with what was distilled from the same trace, or released.",
    )
    subject = f"A memory of {team.name} was flagged as sensitive"
    return _letter(person, MailKind.FLAGGED_SENSITIVE, team, subject, lines, "quarantine", f"Look at it in {team.name}")


def _letter(
    person: User, kind: str, team: Team, subject: str, lines: tuple[str, ...], page: str, words: str
) -> Letter:  # fmt: skip
    role = "review" if kind in TO_REVIEWERS else "manage"
    return Letter(
        subject=subject,
        lines=lines,
        link=settings.SITE_URL + reverse("mail_link", args=[team.pk, page]),
        link_words=words,
        why=f"Sent to {person.email} because you {role} {team.name} on Hindsight.",
        unsubscribe=mail_choices.link(person, kind),
    )


def _amount(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
