"""Reading from a streaming replica: never less than what the team has written before.

With DATABASE_REPLICA_URL, recalls look there, so that the primary has the writing to itself. A replica is always
a little behind. So each audited change of a team leaves, once it is committed, a mark: the place in the
write-ahead log (LSN) up to which a server must have come to have it. A replica that has not replayed so far is not
asked, and neither is one that is down. Receipts and counted hits leave no mark: no recall depends on them.

Marks stand in a table that is not logged. After a crash it is empty, and so is it after a replica was made the
primary; a team without a mark gets one at the log's end, as if it had just written.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from django.db import DEFAULT_DB_ALIAS, Error, connection, connections, transaction

from hindsight_site.accounts.tenancy import enter_team

if TYPE_CHECKING:
    from hindsight_site.accounts.models import Team

logger = logging.getLogger(__name__)

ALIAS = "replica"
PAUSE_SECONDS = 10.0  # that a replica which cannot be reached is left alone; nobody waits for it meanwhile

# Never backwards: of two that write at once the later mark may be noted first. None for a team that is gone.
NOTE = """
INSERT INTO accounts_writemark AS mark (team_id, lsn)
SELECT id, pg_current_wal_insert_lsn() FROM accounts_team WHERE id = %s
ON CONFLICT (team_id) DO UPDATE SET lsn = GREATEST(mark.lsn, EXCLUDED.lsn)
"""
NEEDED = "SELECT lsn::text FROM accounts_writemark WHERE team_id = %s"
# Null on a server that never was a replica, false on one that is none any more: it may be behind the new primary.
HAS_COME = "SELECT coalesce(pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= %s::pg_lsn, false)"

Result = TypeVar("Result")

_paused_until = 0.0


@dataclass(frozen=True, slots=True)
class _Mark:
    """Notes, after the commit, that a team has written."""

    team_id: uuid.UUID

    def __call__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(NOTE, [self.team_id])


def is_used() -> bool:
    """Whether there is a replica to read from."""
    return ALIAS in connections.settings


def note(team_id: uuid.UUID) -> None:
    """Have it noted, when the transaction commits, that the team has written. Once for each transaction."""
    if is_used() and not _is_writing(team_id):
        transaction.on_commit(_Mark(team_id))


def forget(team_id: uuid.UUID) -> None:
    """Remove a team's mark, in the transaction of whoever deletes the team."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM accounts_writemark WHERE team_id = %s", [team_id])


def ask(team: Team, read: Callable[[], Result]) -> Result | None:
    """Return what `read` returns on the replica, or None when it has to be asked of the primary.

    `read` runs in a transaction of its own with `team` at work, and every statement in it goes to the replica,
    which takes no writes. None: there is no replica, it is down, it has not got the team's last write yet, this
    very transaction has written, or something went wrong there.
    """
    if not is_used() or time.monotonic() < _paused_until or _is_writing(team.pk):
        return None
    needed = _needed(team.pk)
    known = connections[ALIAS].connection is not None
    try:
        with _instead_of_primary(), transaction.atomic():
            enter_team(team)
            return read() if _has_come(needed) else None
    except Error as error:
        logger.warning("the replica did not answer: asking the primary", extra={"error": type(error).__name__})
        connections[ALIAS].close()
        if not known:
            _pause()
        return None


@contextmanager
def _instead_of_primary() -> Iterator[None]:
    """For this thread, statements meant for the primary go to the replica.

    Searches are written in SQL on Django's default connection. It is exchanged as a whole, so that no search has
    to know where it runs, and none can be forgotten.
    """
    primary = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = connections[ALIAS]
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = primary


def _needed(team_id: uuid.UUID) -> str:
    """How far a server must have come to have all that the team has written."""
    with connection.cursor() as cursor:
        cursor.execute(NEEDED, [team_id])
        found = cursor.fetchone()
        if found is None:
            cursor.execute(f"{NOTE} RETURNING lsn::text", [team_id])
            found = cursor.fetchone()
    return str(found[0])


def _has_come(needed: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(HAS_COME, [needed])
        return bool(cursor.fetchone()[0])


def _is_writing(team_id: uuid.UUID) -> bool:
    """Whether the transaction that is open has changed something of the team."""
    mark = _Mark(team_id)
    return any(waiting[1] == mark for waiting in connection.run_on_commit)


def _pause() -> None:
    """Leave a replica alone that cannot be reached. Of this process."""
    global _paused_until
    _paused_until = time.monotonic() + PAUSE_SECONDS
