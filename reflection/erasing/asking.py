"""Asking for an erasure: confirmed by a typed word, its target sealed in the job until it has ended."""

from __future__ import annotations

from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.enums import JobKind
from hindsight_site.accounts.jobs import actions as jobs
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.accounts.models import ApiToken, Team, User
from hindsight_site.refusals import FieldError, Invalid
from reflection.erasing.targets import Target

CONFIRMATION = "erase"


def request_erasure(
    *,
    team: Team,
    by: Actor,
    target: Target,
    confirmation: str,
    person: User | None = None,
    token: ApiToken | None = None,
) -> Job:
    """Queue the erasure. Raises `Invalid` when `confirmation` is not the word "erase".

    The job shows the kind of target and a fingerprint, never what is erased.
    """
    if confirmation.strip().lower() != CONFIRMATION:
        message = f"Type {CONFIRMATION} to confirm. Nothing was erased."
        raise Invalid(message, code="not_confirmed", errors=(FieldError("confirmation", message),))
    return jobs.request(
        team=team,
        by=by,
        kind=JobKind.ERASURE,
        arguments={"target": target.kind, "fingerprint": target.fingerprint},
        secret=target.as_json(),
        person=person,
        token=token,
    )
