"""Which mails about the review are due, and sending them: each at most once, whatever dies on the way.

A row per person, kind and thing is written before anything is sent, and its claim is committed before the
mail server is spoken to. What dies while sending is not tried again: it may have arrived.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from smtplib import SMTPDataError, SMTPRecipientsRefused, SMTPSenderRefused
from zoneinfo import ZoneInfo

from django.core import mail
from django.db.models import F
from django.utils import timezone

from hindsight_site.accounts import mail_choices, mailing, permissions
from hindsight_site.accounts.enums import MailKind
from hindsight_site.accounts.models import Membership, Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.queue import enqueue
from reflection.enums import BatchStatus, Decision, ItemState, MailStatus
from reflection.models import ReviewBatch, ReviewItem, ReviewMail, Verdict
from reflection.review import letters, queries

logger = logging.getLogger(__name__)

SEND = "reflection.tasks.send_review_mail"
TELL_OPENED = timedelta(hours=24)  # after that the week is no news any more
LEAST_LEFT = timedelta(hours=12)  # before the closing: less is no invitation
REMINDER_DAY, MAIL_HOURS = 4, (8, 18)  # Friday; by day, by the team's clock
REMIND_AFTER = timedelta(hours=36)  # since the opening
TELL_DRIFT = timedelta(days=3)  # after a week has closed
TELL_SENSITIVE = timedelta(hours=24)
MOST_ATTEMPTS = 5  # while the mail server refuses
PAUSE = timedelta(minutes=25)  # between attempts: a tick of the schedule
WAKE_UP_LOST_AFTER = timedelta(minutes=2)
LOST_AFTER = timedelta(minutes=15)
# The mail server said no before it took the mail: to try again cannot send it twice.
REFUSED = (SMTPRecipientsRefused, SMTPSenderRefused, SMTPDataError)


@dataclass(frozen=True, slots=True)
class Due:
    """A kind of mail about something, for whoever has the permission."""

    kind: MailKind
    about: str
    permission: str


def queue_due(now: datetime) -> str:
    """Queue what is due in every team. Returns a line that says how many, such as "3 queued"."""
    queued = 0
    for team in Team.objects.filter(suspended_at=None).order_by("pk"):
        try:
            with team_transaction(team):
                queued += sum(_queue(team, due, now) for due in due_of(team, now))
                _carry_on(team, now)
        except Exception:  # one team's trouble must not keep the others' mails back
            logger.exception("mails about the review were not queued", extra={"team": str(team.pk)})
    return f"{queued} queued"


def due_of(team: Team, now: datetime) -> list[Due]:
    """What people of the team are to be told at `now`."""
    local = now.astimezone(ZoneInfo(team.time_zone))
    by_day = MAIL_HOURS[0] <= local.hour < MAIL_HOURS[1]
    due = [Due(MailKind.FLAGGED_SENSITIVE, str(pk), permissions.MANAGE) for pk in _flagged(team, now)]
    batch = queries.current_batch(team, now)
    if batch is not None and batch.status == BatchStatus.OPEN:
        is_news = now - batch.opens_at < TELL_OPENED and batch.closes_at - now > LEAST_LEFT
        if is_news:
            due.append(Due(MailKind.REVIEW_OPENED, batch.week, permissions.REVIEW))
        elif (
            by_day
            and local.weekday() == REMINDER_DAY
            and now - batch.opens_at > REMIND_AFTER
            and _is_behind(team, batch)
        ):
            due.append(Due(MailKind.REVIEW_REMINDER, batch.week, permissions.REVIEW))
    if by_day and (week := _drifted(team, now)):
        due.append(Due(MailKind.REVIEW_DRIFT, week, permissions.MANAGE))
    return due


def _flagged(team: Team, now: datetime) -> Iterable[uuid.UUID]:
    rows = Verdict.objects.of(team).filter(decision=Decision.SENSITIVE, undone_at=None)
    return rows.filter(created_at__gt=now - TELL_SENSITIVE, created_at__lte=now).values_list("pk", flat=True)


def _is_behind(team: Team, batch: ReviewBatch) -> bool:
    """Whether less than half of a batch is decided."""
    items = ReviewItem.objects.of(team).filter(batch=batch).exclude(state=ItemState.VOID)
    states = list(items.values_list("state", flat=True))
    return 2 * sum(state != ItemState.PENDING for state in states) < len(states)


def _drifted(team: Team, now: datetime) -> str:
    """The week that closed lately and fell out of its usual range; "" when there is none."""
    closed = ReviewBatch.objects.of(team).filter(closes_at__lte=now, closes_at__gt=now - TELL_DRIFT)
    batch = closed.order_by("-closes_at").first()
    return batch.week if batch is not None and letters.drift_of(team, batch.week, now) else ""


def _queue(team: Team, due: Due, now: datetime) -> int:
    """Write a row for everybody who is to be told and has not been, and wake a worker. Returns how many."""
    told = ReviewMail.objects.of(team).filter(kind=due.kind, about=due.about).values_list("user_id", flat=True)
    roles = [role for role, may in permissions.ROLES.items() if due.permission in may]
    members = Membership.objects.of(team).filter(role__in=roles).exclude(user__in=list(told)).select_related("user")
    people = [one.user for one in members if mail_choices.wants(one.user, due.kind)]
    reachable = mail_choices.reachable(people)
    queued = 0
    for person in people:
        if person.pk not in reachable or letters.compose(team, person, due.kind, due.about, now) is None:
            continue
        # Two schedules at once: the unique row lets one of them through.
        row, created = ReviewMail.objects.of(team).get_or_create(
            team=team, user=person, kind=due.kind, about=due.about, defaults={"created_at": now, "changed_at": now}
        )
        if created:
            enqueue(SEND, team.pk, row.pk)
            queued += 1
    return queued


def _carry_on(team: Team, now: datetime) -> None:
    """Wake workers for what waits, and give up what died while it was being sent."""
    rows = ReviewMail.objects.of(team)
    rows.filter(status=MailStatus.SENDING, changed_at__lt=now - LOST_AFTER).update(
        status=MailStatus.FAILED, error="Its worker died while sending; not repeated, for it may have arrived.",
        changed_at=now,
    )  # fmt: skip
    waiting = rows.filter(status=MailStatus.QUEUED, changed_at__lt=now - WAKE_UP_LOST_AFTER)
    for row in waiting.order_by("changed_at", "pk")[:200]:
        if row.attempts == 0 or row.changed_at < now - PAUSE:
            enqueue(SEND, team.pk, row.pk)


def send(team: Team, mail_id: uuid.UUID) -> str:
    """Send one mail, unless another worker does or it is not wanted any more. Returns its state, "" when not ours."""
    now = timezone.now()
    with team_transaction(team):
        claimed = ReviewMail.objects.of(team).filter(pk=mail_id, status=MailStatus.QUEUED)
        if not claimed.update(status=MailStatus.SENDING, attempts=F("attempts") + 1, changed_at=now):
            return ""
        row = ReviewMail.objects.of(team).select_related("user").get(pk=mail_id)
        letter, address = _letter(team, row, now), mail_choices.reachable([row.user]).get(row.user_id, "")
    if letter is None or not address:
        return _end(team, row, MailStatus.DROPPED)
    return _end(team, row, *_attempt(letter, address, row))


def _letter(team: Team, row: ReviewMail, now: datetime) -> mailing.Letter | None:
    """What it says now; None when there is nothing to say any more, or the person left or wants none."""
    member = Membership.objects.of(team).filter(user=row.user).first()
    if member is None or not mail_choices.wants(row.user, row.kind):
        return None
    needed = permissions.REVIEW if row.kind in letters.TO_REVIEWERS else permissions.MANAGE
    return letters.compose(team, row.user, row.kind, row.about, now) if permissions.can(member, needed) else None


def _attempt(letter: mailing.Letter, address: str, row: ReviewMail) -> tuple[MailStatus, str]:
    """Speak to the mail server. Only what it surely did not take is left to be tried again."""
    again = MailStatus.QUEUED if row.attempts < MOST_ATTEMPTS else MailStatus.FAILED
    try:
        connection = mail.get_connection()
        connection.open()
    except OSError as error:
        return again, f"The mail server could not be reached: {type(error).__name__}."
    try:
        message = mailing.message_of(letter, address)
        message.connection = connection
        message.send()
    except REFUSED as error:
        return again, f"The mail server refused it: {type(error).__name__}."
    except OSError as error:  # smtplib's other errors: the line broke, and nobody knows where
        return MailStatus.FAILED, f"Not known to have arrived, not repeated: {type(error).__name__}."
    finally:
        with suppress(OSError):  # it was sent, or it was not: how the line ends changes neither
            connection.close()
    return MailStatus.SENT, ""


def _end(team: Team, row: ReviewMail, status: MailStatus, error: str = "") -> str:
    if error:
        logger.warning("a mail about the review was not sent", extra={"mail": str(row.pk), "why": error})
    with team_transaction(team):
        held = ReviewMail.objects.of(team).filter(pk=row.pk, status=MailStatus.SENDING, attempts=row.attempts)
        return status if held.update(status=status, error=error, changed_at=timezone.now()) else ""
