"""Invitations: the only writer of them, and the signed links that accept one.

A link names its team, so the team can be entered before the row is read; it works once, for seven
days, and only until the next mail.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.core import mail, signing
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import F
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from hindsight_site.accounts import audit, people
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Invitation, Membership, Team, User
from hindsight_site.accounts.tenancy import enter_team
from hindsight_site.refusals import Conflict, FieldError, Forbidden, Invalid, NotFound, Refused

LIFETIME = timedelta(days=7)
MAX_OPEN = 200  # invitations of one team, so that it cannot be used to flood mailboxes
PAUSE = timedelta(minutes=1)  # between two mails of one invitation
SESSION_KEY = "invitation"  # in the session: the link by which a new person came, until they have signed up
_SALT, _MAILED = "hindsight.invitation.link", "hindsight.invitation"


@dataclass(frozen=True, slots=True)
class Found:
    """A link that holds, with what it opens. The team was entered."""

    team: Team
    invitation: Invitation
    was_mailed: bool  # the link came out of the mailbox of the invited, and was not copied from the page


class MailFailed(Refused):
    """The mail server did not take the mail; the invitation was not changed."""

    status = 503
    code = "mail_failed"


@transaction.atomic
def invite(*, team: Team, by: Actor, email: str, role: str, allowed: Collection[str], inviter: User) -> Invitation:
    """Invite somebody and mail them the link.

    Raises `Invalid` for a bad address or role, `Forbidden` when `role` is not among `allowed`, and
    `Conflict` when they are in the team or invited already.
    """
    email = _checked_email(email)
    _check_gift(people.check_role(role), allowed)
    Team.objects.select_for_update().get(pk=team.pk)  # one at a time: the checks below hold
    if Membership.objects.of(team).filter(user__email__iexact=email).exists():
        raise Conflict(f"{email} is in the team already.", code="member_already")
    open_ones = list(open_invitations(team).values_list("email", flat=True)[:MAX_OPEN])
    if email in open_ones:
        raise Conflict(f"{email} is invited already; send that invitation again.", code="invited_already")
    if len(open_ones) >= MAX_OPEN:
        raise Conflict(f"A team has at most {MAX_OPEN} open invitations; revoke some.", code="too_many")
    invitation = Invitation.objects.create(
        team=team, email=email, role=role, invited_by=inviter, expires_at=timezone.now() + LIFETIME
    )
    _send(team, invitation, inviter)
    audit.record(team=team, by=by, verb="invitation.created", on=invitation, detail={"role": role})
    return invitation


@transaction.atomic
def resend(*, team: Team, by: Actor, invitation: Invitation, allowed: Collection[str], sender: User) -> Invitation:
    """Mail another link, good for another seven days; the former one works no more."""
    # Two at once are one mail: the second finds that the first went out just now.
    invitation.refresh_from_db(from_queryset=Invitation.objects.of(team).select_for_update())
    _check_gift(invitation.role, allowed)
    _check_open(invitation)
    if invitation.sent_at is not None and invitation.sent_at > timezone.now() - PAUSE:
        raise Conflict("The last mail went out less than a minute ago.", code="too_soon")
    before = audit.state_of(invitation)
    _send(team, invitation, sender)
    audit.record(
        team=team, by=by, verb="invitation.resent", on=invitation, before=before, detail={"sends": invitation.sends}
    )
    return invitation


@transaction.atomic
def revoke(*, team: Team, by: Actor, invitation: Invitation) -> None:
    """Take an invitation back. Its link stops working; taking it back twice is fine."""
    if invitation.accepted_at is not None:
        raise Conflict("This invitation was accepted; remove the person instead.", code="accepted_already")
    before, now = audit.state_of(invitation), timezone.now()
    pending = Invitation.objects.of(team).filter(pk=invitation.pk, accepted_at=None, revoked_at=None)
    if pending.update(revoked_at=now):
        invitation.revoked_at = now
        audit.record(team=team, by=by, verb="invitation.revoked", on=invitation, before=before)


@transaction.atomic
def accept(*, team: Team, by: Actor, invitation: Invitation, person: User) -> Membership:
    """Join the team with the invitation's role, once.

    Raises `Forbidden` when the person's address is not the invited one, `Conflict` when the
    invitation is used, revoked or expired, or the person is in the team already.
    """
    if person.email.lower() != invitation.email:
        raise Forbidden(
            f"This invitation is for {invitation.email}. Log in with that address, or have {person.email} invited.",
            code="other_address",
        )
    _check_open(invitation)
    before, now = audit.state_of(invitation), timezone.now()
    usable = Invitation.objects.of(team).filter(
        pk=invitation.pk, accepted_at=None, revoked_at=None, expires_at__gt=now, sends=invitation.sends
    )
    if not usable.update(accepted_at=now):
        raise Conflict("This invitation was used or taken back a moment ago.", code="invitation_closed")
    membership, created = Membership.objects.get_or_create(team=team, user=person, defaults={"role": invitation.role})
    if not created:
        raise Conflict(f"You are in {team.name} already.", code="member_already")
    invitation.accepted_at = now
    detail = {"role": membership.role, "user": person.pk}
    audit.record(team=team, by=by, verb="invitation.accepted", on=invitation, before=before, detail=detail)
    return membership


def open_invitations(team: Team):  # noqa: ANN201 - a queryset of Invitation
    """Those neither accepted nor revoked, newest first; expired ones too, which can be sent again."""
    rows = Invitation.objects.of(team).filter(accepted_at=None, revoked_at=None)
    return rows.select_related("invited_by").order_by("-created_at", "-id")


def link(invitation: Invitation, *, mailed: bool = False) -> str:
    """The address that accepts the invitation, as it stands after its last mail.

    Whoever has the one that was `mailed` reads the mailbox of the invited. The other is for those who invite,
    to hand on: it opens the same, and proves no address.
    """
    told = [str(invitation.team_id), str(invitation.pk), invitation.sends]
    token = signing.dumps(told, salt=_MAILED if mailed else _SALT)
    return settings.SITE_URL + reverse("invitation", args=[token])


def find(token: str) -> Found:
    """Read a link and enter its team. Raises `NotFound` for one that is forged or stands for nothing any more."""
    try:
        (team_id, invitation_id, sends), was_mailed = _read(token)
        team = Team.objects.filter(pk=uuid.UUID(team_id), suspended_at=None).first()
    except (signing.BadSignature, ValueError, TypeError):
        raise _gone() from None
    if team is None:
        raise _gone()
    enter_team(team)
    rows = Invitation.objects.of(team).filter(pk=invitation_id, sends=sends)
    invitation = rows.select_related("invited_by").first()
    if invitation is None or not is_open(invitation):
        raise _gone()
    return Found(team, invitation, was_mailed)


def _read(token: str) -> tuple[list[Any], bool]:
    """What a link says, and whether it is one that was mailed. Raises `BadSignature`."""
    try:
        return signing.loads(token, salt=_MAILED, max_age=LIFETIME), True
    except signing.BadSignature:
        return signing.loads(token, salt=_SALT, max_age=LIFETIME), False


def of_session(session: SessionBase) -> Found | None:
    """The invitation by which a person who is not signed in came, while it holds. Enters its team."""
    token = session.get(SESSION_KEY, "")
    if not token:
        return None
    try:
        return find(token)
    except NotFound:
        session.pop(SESSION_KEY, None)
        return None


def is_open(invitation: Invitation) -> bool:
    """Whether it can still be accepted."""
    ended = invitation.accepted_at is not None or invitation.revoked_at is not None
    return not ended and invitation.expires_at > timezone.now()


def _gone() -> NotFound:
    return NotFound("This invitation was used, taken back, replaced or is too old. Ask for another.")


def _check_open(invitation: Invitation) -> None:
    if invitation.accepted_at is not None or invitation.revoked_at is not None:
        raise Conflict("This invitation was accepted or taken back.", code="invitation_closed")


def _check_gift(role: str, allowed: Collection[str]) -> None:
    if role not in allowed:
        raise Forbidden(f"Your role may not invite an {role}.", code="role_beyond_yours")


def _checked_email(email: str) -> str:
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError:
        message = "That is not an e-mail address."
        raise Invalid(message, errors=(FieldError("email", message),)) from None
    return email


def _send(team: Team, invitation: Invitation, sender: User) -> None:
    """Count the mail and send it. A mail server that fails undoes the caller's whole change."""
    now = timezone.now()
    fields = {"sent_at": now, "expires_at": now + LIFETIME}
    Invitation.objects.of(team).filter(pk=invitation.pk).update(sends=F("sends") + 1, **fields)
    invitation.refresh_from_db()
    context = {"team": team, "invitation": invitation, "sender": sender, "link": link(invitation, mailed=True)}
    # A name with a line break would be a header of its own.
    subject = " ".join(f"{sender} invites you to {team.name}".split())
    body = render_to_string("accounts/mail/invitation.txt", context)
    try:
        mail.send_mail(subject, body, None, [invitation.email])
    except OSError as error:  # smtplib's errors are OSErrors
        raise MailFailed("The mail could not be sent, so nobody was invited. Try again later.") from error
