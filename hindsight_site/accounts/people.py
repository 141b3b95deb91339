"""The only writers of who is in a team, in which role, and of what a team and a person are called.

`allowed` are the roles that the caller may give and take (`permissions.ROLES_IN_GIFT` of their role).
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from hindsight_site.accounts import actions, audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.enums import TeamRole, Theme
from hindsight_site.accounts.models import Membership, Team, TeamDeletion, User
from hindsight_site.refusals import Conflict, FieldError, Forbidden, Invalid

MAX_NAME = 120  # characters, of a team
# What turns the letters of everything after it round, in mails and on pages as well.
_TURNING = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def time_zones() -> list[str]:
    """The names of all time zones that this machine knows, in order, UTC first."""
    names = zoneinfo.available_timezones() - {"UTC", "localtime", "Factory"}
    # Regions and cities only: the rest are old aliases such as "Etc/GMT+5" or "EST5EDT".
    return ["UTC", *sorted(name for name in names if "/" in name and not name.startswith(("Etc/", "SystemV/")))]


def check_time_zone(name: str) -> str:
    """Return `name`, or raise `Invalid` when there is no such time zone."""
    if name not in zoneinfo.available_timezones():
        message = f"There is no time zone {name[:64]!r}; it is a name such as 'Europe/Paris'."
        raise Invalid(message, errors=(FieldError("time_zone", message),))
    return name


def check_name(name: str) -> str:
    """Return the name of a team, on one line and in one direction. Raises `Invalid` when it is too long or unseen."""
    name = " ".join(name.translate(_TURNING).split())
    if not any(one.isprintable() for one in name) or len(name) > MAX_NAME:
        message = f"A team's name has 1 to {MAX_NAME} characters."
        raise Invalid(message, errors=(FieldError("name", message),))
    return name


@transaction.atomic
def found_team(*, by: Actor, owner: User, name: str, time_zone: str = "UTC") -> Team:
    """Create a team of a person's own."""
    return actions.create_team(by=by, name=check_name(name), owner=owner, time_zone=check_time_zone(time_zone))


@transaction.atomic
def change_team(*, team: Team, by: Actor, name: str, time_zone: str) -> Team:
    """Rename a team and set its time zone. Its short name stays: addresses hold it."""
    before, was = audit.state_of(team), (team.name, team.time_zone)
    team.name, team.time_zone = check_name(name), check_time_zone(time_zone)
    team.save(update_fields=["name", "time_zone"])
    changed = [field for field, old in zip(("name", "time_zone"), was, strict=True) if getattr(team, field) != old]
    audit.record(team=team, by=by, verb="team.changed", on=team, before=before, detail={"changed": changed})
    return team


@transaction.atomic
def suspend_team(*, team: Team, by: Actor) -> Team:
    """Shut a team's people, tokens and agents out until it is resumed. Suspending twice is fine."""
    return _set_suspended(team, by, timezone.now(), "team.suspended")


@transaction.atomic
def resume_team(*, team: Team, by: Actor) -> Team:
    """Let a suspended team's people and tokens in again. Raises `Conflict` while it is being deleted."""
    if TeamDeletion.objects.of(team).exists():
        raise Conflict(f"{team.name} is being deleted; it cannot be resumed.", code="team_suspended")
    return _set_suspended(team, by, None, "team.resumed")


def _set_suspended(team: Team, by: Actor, moment: datetime | None, verb: str) -> Team:
    now = Team.objects.select_for_update().get(pk=team.pk)
    if (now.suspended_at is None) == (moment is None):
        return now
    before, now.suspended_at = audit.state_of(now), moment
    now.save(update_fields=["suspended_at"])
    audit.record(team=now, by=by, verb=verb, on=now, before=before)
    return now


@transaction.atomic
def change_role(*, team: Team, by: Actor, membership: Membership, role: str, allowed: Collection[str]) -> Membership:
    """Give a member another role.

    Raises `Forbidden` when the new or the present role is not the caller's to give, `Conflict` when
    the team would be left without an owner, `Invalid` for an unknown role.
    """
    check_role(role)
    membership = _locked(team, membership)
    _check_allowed({role, membership.role}, allowed)
    if membership.role == role:
        return membership
    _check_owner_stays(team, membership)
    before, detail = audit.state_of(membership), {"before": membership.role, "role": role}
    membership.role = role
    membership.save(update_fields=["role"])
    audit.record(team=team, by=by, verb="member.role_changed", on=membership, before=before, detail=detail)
    return membership


@transaction.atomic
def add(*, team: Team, by: Actor, person: User, role: str) -> Membership:
    """Put somebody into a team without an invitation, for commands. Raises `Conflict` for a member."""
    membership, created = Membership.objects.get_or_create(team=team, user=person, defaults={"role": check_role(role)})
    if not created:
        raise Conflict(f"{person} is in {team.name} already.", code="member_already")
    audit.record(team=team, by=by, verb="member.added", on=membership, detail={"user": person.pk, "role": role})
    return membership


@transaction.atomic
def remove(*, team: Team, by: Actor, membership: Membership, allowed: Collection[str]) -> None:
    """Remove somebody else. Refuses as `change_role` does."""
    membership = _locked(team, membership)
    _check_allowed({membership.role}, allowed)
    _check_owner_stays(team, membership)
    _take_out(team, by, membership, "member.removed")


@transaction.atomic
def leave(*, team: Team, by: Actor, membership: Membership) -> None:
    """Leave a team of one's own accord. The last owner cannot: `Conflict`."""
    membership = _locked(team, membership)
    _check_owner_stays(team, membership)
    _take_out(team, by, membership, "member.left")


@transaction.atomic
def transfer_ownership(*, team: Team, by: Actor, giver: Membership, heir: Membership) -> None:
    """Make `heir` an owner and `giver`, who is one, an admin."""
    giver, heir = _locked(team, giver), _locked(team, heir)
    if giver.role != TeamRole.OWNER:
        raise Forbidden("Only an owner can hand the team over.")
    if heir.pk == giver.pk or heir.role == TeamRole.OWNER:
        raise Conflict(f"{heir.user} is an owner already.", code="owner_already")
    before = _roles(giver, heir)
    heir.role, giver.role = TeamRole.OWNER, TeamRole.ADMIN
    for membership in (heir, giver):
        membership.save(update_fields=["role"])
    detail = {"from": giver.user_id, "to": heir.user_id}
    audit.record(
        team=team,
        by=by,
        verb="team.ownership_transferred",
        on=team,
        before=before,
        after=_roles(giver, heir),
        detail=detail,
    )


def change_person(*, person: User, name: str, time_zone: str, theme: str) -> User:
    """Change how a person is called, and in which time and colours pages are shown to them."""
    if theme not in Theme.values:
        raise Invalid("theme must be light, dark or empty.", errors=(FieldError("theme", "Choose one."),))
    person.time_zone = check_time_zone(time_zone)
    person.first_name, person.last_name, person.theme = " ".join(name.split())[:150], "", theme
    person.save(update_fields=["first_name", "last_name", "time_zone", "theme"])
    return person


def check_role(role: str) -> str:
    """Return `role`, or raise `Invalid` when there is no such role."""
    if role not in TeamRole.values:
        message = f"must be one of: {', '.join(TeamRole.values)}."
        raise Invalid(f"role {message}", errors=(FieldError("role", message),))
    return role


def _check_allowed(roles: set[str], allowed: Collection[str]) -> None:
    if beyond := sorted(roles - set(allowed)):
        named = " or ".join(str(TeamRole(role).label).lower() for role in beyond)
        raise Forbidden(f"Your role may not make, change or remove an {named}.", code="role_beyond_yours")


def _locked(team: Team, membership: Membership) -> Membership:
    """The membership as it is now, with the team's people locked: two owners cannot both leave at once."""
    Team.objects.select_for_update().get(pk=team.pk)
    found = Membership.objects.of(team).select_related("user").filter(pk=membership.pk).first()
    if found is None:
        raise Conflict("That person is no longer in the team.", code="not_a_member")
    return found


def _check_owner_stays(team: Team, membership: Membership) -> None:
    if membership.role != TeamRole.OWNER:
        return
    if not Membership.objects.of(team).filter(role=TeamRole.OWNER).exclude(pk=membership.pk).exists():
        raise Conflict(
            f"{membership.user} is the only owner of {team.name}. Make someone else an owner first, "
            "or delete the team.",
            code="last_owner",
        )


def _take_out(team: Team, by: Actor, membership: Membership, verb: str) -> None:
    before, detail = audit.state_of(membership), {"user": membership.user_id, "role": membership.role}
    audit.record(team=team, by=by, verb=verb, on=membership, before=before, after="", detail=detail)
    membership.delete()


def _roles(*memberships: Membership) -> str:
    """The fingerprint of who has which role."""
    return audit.fingerprint({str(membership.user_id): membership.role for membership in memberships})
