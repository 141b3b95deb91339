"""Changing a team's policy. Every change is a version; going back to an earlier one is a change too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from hindsight_site.refusals import FieldError, Invalid, NotFound, Stale
from memories import policy_table, team_policy
from memories.models import PolicyVersion
from memories.policy_table import PRESETS, Values

DEFAULTS = 0  # the number that stands for the policy before the first change


@transaction.atomic
def change_policy(
    *, team: Team, by: Actor, changes: Mapping[str, Any], preset: str = "", note: str = "",
    expected_version: int | None = None,
) -> PolicyVersion | None:  # fmt: skip
    """Set some numbers of a team's policy, over those of `preset` when one is named, else over the present ones.

    Returns the version in force: without a difference the one that was, None for the defaults. Raises
    `Invalid` that names every wrong number, and `Stale` when somebody else changed the policy first.
    """
    standing = _locked(team, expected_version)
    values = wanted(standing, changes, preset)
    return _store(team, by, standing, values, note)


@transaction.atomic
def restore_policy(
    *, team: Team, by: Actor, number: int, note: str = "", expected_version: int | None = None
) -> PolicyVersion | None:
    """Go back to an earlier version; 0 is the defaults. Raises `NotFound` or `Stale`."""
    standing = _locked(team, expected_version)
    earlier = None
    if number != DEFAULTS:
        earlier = PolicyVersion.objects.of(team).filter(number=number).first()
        if earlier is None:
            raise NotFound(f"The policy has no version {number}.", code="version_not_found")
    back = "the defaults" if earlier is None else f"version {number}"
    return _store(team, by, standing, team_policy.values_of(earlier), note or f"back to {back}")


def wanted(standing: PolicyVersion | None, changes: Mapping[str, Any], preset: str = "") -> Values:
    """All numbers as they would be after a change. Raises `Invalid`."""
    if preset and preset not in PRESETS:
        message = f"must be one of: {', '.join(PRESETS)}."
        raise Invalid(f"preset {message}", errors=(FieldError("preset", message),))
    base = PRESETS[preset].values if preset else team_policy.values_of(standing)
    return policy_table.check({**base, **changes})


def _locked(team: Team, expected_version: int | None) -> PolicyVersion | None:
    """The version in force, with the policy locked for others."""
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    standing = team_policy.current(team)
    number = standing.number if standing else DEFAULTS
    if expected_version is not None and expected_version != number:
        raise Stale(
            f"You changed version {expected_version} of the policy; it is at version {number} now. "
            "Look at it again and repeat the change.",
            extra={"revision": number},
        )
    return standing


def _store(team: Team, by: Actor, standing: PolicyVersion | None, values: Values, note: str) -> PolicyVersion | None:
    before = team_policy.values_of(standing)
    changed = policy_table.differences(before, values)
    if not changed:
        return standing
    version = PolicyVersion.objects.create(
        team=team,
        number=(standing.number if standing else DEFAULTS) + 1,
        values=policy_table.differing(values),
        preset=policy_table.preset_of(values),
        note=note[:300],
        actor_kind=by.kind,
        actor_label=by.label,
    )
    audit.record(
        team=team,
        by=by,
        verb="policy.changed",
        on=version,
        before=audit.fingerprint(before),
        after=audit.fingerprint(values),
        detail={"version": version.number, "numbers": {key: [old, new] for key, old, new in changed}},
    )
    return version
