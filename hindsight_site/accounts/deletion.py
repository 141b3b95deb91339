"""Deleting a team: suspended at once, then emptied table by table in batches by a worker.

The job's row outlives the team, as does the audit, which holds no text of the team's.
"""

from __future__ import annotations

import logging
import time
import uuid
from datetime import timedelta
from graphlib import TopologicalSorter

from django.apps import apps
from django.db import DatabaseError, models, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from hindsight_site.accounts import audit, limits, replica
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.enums import DeletionState
from hindsight_site.accounts.models import Team, TeamDeletion, User
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.queue import enqueue
from hindsight_site.refusals import Conflict, FieldError, Invalid

logger = logging.getLogger(__name__)
DELETE_TEAM = "hindsight_site.accounts.tasks.delete_team"
BATCH = 2_000  # rows a transaction
TURN = 45.0  # seconds of work before the worker is given back; the next turn goes on
LEASE = timedelta(minutes=5)
WAKE_UP_LOST_AFTER = timedelta(minutes=1)
MAX_ATTEMPTS = 5  # in a row without a row deleted

_BY = audit.system("team deletion")


@transaction.atomic
def request_deletion(*, team: Team, by: Actor, requested_by: User, confirmation: str) -> TeamDeletion:
    """Suspend a team and hand it to a worker that deletes it. `confirmation` must be its short name.

    Raises `Invalid` when it is not, `Conflict` when the deletion is under way.
    """
    if confirmation.strip() != team.slug:
        message = f"Type {team.slug} to delete this team."
        raise Invalid(message, code="not_confirmed", errors=(FieldError("confirmation", message),))
    before, now = audit.state_of(team), timezone.now()
    if not Team.objects.filter(pk=team.pk, suspended_at=None).update(suspended_at=now):
        raise Conflict("This team is being deleted already.", code="team_suspended")
    deletion = TeamDeletion.objects.create(team=team, team_name=team.name, requested_by=requested_by)
    team.suspended_at = now
    audit.record(team=team, by=by, verb="team.deletion_requested", on=team, before=before)
    enqueue(DELETE_TEAM, team.pk, deletion.pk)
    return deletion


def tables() -> list[type[models.Model]]:
    """The tables of a team in an order in which they can be emptied: what points comes before what is
    pointed at. Tables that outlive the team are not among them."""
    ours = {model for model in apps.get_models() if _belongs_to_a_team(model)}
    order: TopologicalSorter[type[models.Model]] = TopologicalSorter()
    for model in ours:
        targets = {field.related_model for field in model._meta.fields if field.is_relation}
        order.add(model, *(target for target in ours - {model} if target in targets))
    return list(order.static_order())[::-1]


def _belongs_to_a_team(model: type[models.Model]) -> bool:
    return any(
        isinstance(field, models.ForeignKey) and field.related_model is Team and field.db_constraint  # type: ignore[attr-defined]
        for field in model._meta.fields
    )


def run(team: Team, deletion_id: uuid.UUID, *, turn: float = TURN, batch: int = BATCH) -> str:
    """Delete for at most `turn` seconds and return the state reached, as a word of `DeletionState`.

    Safe to call at any time and twice at once: a lease keeps the second away. What could not be
    finished is queued again.
    """
    if not _claim(team, deletion_id):
        return DeletionState.RUNNING
    try:
        done = _delete_rows(team, deletion_id, time.monotonic() + turn, batch)
    except DatabaseError as error:
        logger.exception("team deletion failed")
        _note(team, deletion_id, state=DeletionState.FAILED, error=type(error).__name__, lease_until=None)
        return DeletionState.FAILED
    if done:
        _finish(team, deletion_id)
        return DeletionState.DONE
    with team_transaction(team):
        _row(team, deletion_id).update(state=DeletionState.QUEUED, lease_until=None)
        enqueue(DELETE_TEAM, team.pk, deletion_id)
    return DeletionState.QUEUED


def _claim(team: Team, deletion_id: uuid.UUID) -> bool:
    now = timezone.now()
    free = Q(state__in=[DeletionState.QUEUED, DeletionState.FAILED]) | Q(lease_until__lt=now)
    with team_transaction(team):
        claimed = _row(team, deletion_id).exclude(state=DeletionState.DONE).filter(free, attempts__lt=MAX_ATTEMPTS)
        if not claimed.update(state=DeletionState.RUNNING, lease_until=now + LEASE, attempts=F("attempts") + 1):
            return False
        if _row(team, deletion_id).filter(rows_total=0).exists():
            total = sum(model._default_manager.filter(team_id=team.pk).count() for model in tables())
            _row(team, deletion_id).update(rows_total=total)
    return True


def _delete_rows(team: Team, deletion_id: uuid.UUID, until: float, batch: int) -> bool:
    """Delete batch by batch; True when nothing of the team is left."""
    for model in tables():
        while True:
            with team_transaction(team):
                rows = model._default_manager.filter(team_id=team.pk)
                ids = list(rows.order_by().values_list("pk", flat=True)[:batch])
                # Children went first, so there is nothing to collect: one DELETE.
                gone = rows.filter(pk__in=ids)._raw_delete("default") if ids else 0
                if gone:
                    _row(team, deletion_id).update(
                        table=str(model._meta.verbose_name_plural),
                        rows_deleted=F("rows_deleted") + gone,
                        attempts=0,
                        lease_until=timezone.now() + LEASE,
                    )
            if len(ids) < batch:
                break
            if time.monotonic() > until:
                return False
    return True


def _finish(team: Team, deletion_id: uuid.UUID) -> None:
    with team_transaction(team):
        audit.record(team=team, by=_BY, verb="team.deleted", on=team, before=audit.state_of(team), after="")
        Team.objects.filter(pk=team.pk)._raw_delete("default")
        limits.forget(team.pk)
        replica.forget(team.pk)
        _row(team, deletion_id).update(
            state=DeletionState.DONE, table="", error="", lease_until=None, finished_at=timezone.now()
        )


def _note(team: Team, deletion_id: uuid.UUID, **fields: object) -> None:
    with team_transaction(team):
        _row(team, deletion_id).update(**fields)


def _row(team: Team, deletion_id: uuid.UUID) -> QuerySet[TeamDeletion]:
    return TeamDeletion.objects.of(team).filter(pk=deletion_id)


def wake_lost(team: Team) -> int:
    """Queue this suspended team's deletion again when its wake-up or its worker was lost."""
    now = timezone.now()
    waiting = Q(state=DeletionState.QUEUED, created_at__lt=now - WAKE_UP_LOST_AFTER)
    lost = waiting | Q(state=DeletionState.FAILED) | Q(state=DeletionState.RUNNING, lease_until__lt=now)
    with team_transaction(team):
        rows = TeamDeletion.objects.of(team).filter(lost, attempts__lt=MAX_ATTEMPTS)
        found = list(rows.values_list("pk", flat=True))
        for deletion_id in found:
            enqueue(DELETE_TEAM, team.pk, deletion_id)
    return len(found)
