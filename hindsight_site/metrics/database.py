"""What the database server says of itself, and what waits in the queue."""

from __future__ import annotations

import shutil
from pathlib import Path

from django.conf import settings
from django.db import connection

from hindsight_site import stuck_work
from hindsight_site.metrics.text import Metric, by, one

# Of a queue's task, `lock` is when it came in, and while a worker has it, when it is given up for lost.
QUEUES = """
SELECT key, count(*) FILTER (WHERE lock <= now()), count(*) FILTER (WHERE lock > now()),
       coalesce(extract(epoch FROM now() - min(lock) FILTER (WHERE lock <= now())), 0)
FROM django_q_ormq GROUP BY key
"""
# Of other roles' connections kind and state are hidden from a role that is no administrator; the server's own
# processes have no role.
CONNECTIONS = """
SELECT coalesce(state, 'hidden'), count(*) FROM pg_stat_activity
WHERE datname = current_database() AND usesysid IS NOT NULL
  AND coalesce(backend_type, 'client backend') = 'client backend' GROUP BY 1
"""
SERVER = "SELECT current_setting('max_connections')::int, pg_database_size(current_database())"


def read() -> list[Metric]:
    """Queue, connections, sizes. Raises DatabaseError."""
    with connection.cursor() as cursor:
        cursor.execute(QUEUES)
        queues = {row[0]: row[1:] for row in cursor.fetchall()} or {settings.Q_CLUSTER["name"]: (0, 0, 0)}
        cursor.execute(CONNECTIONS)
        connections = dict(cursor.fetchall())
        cursor.execute(SERVER)
        most_connections, size = cursor.fetchone()
    disk = shutil.disk_usage(_nearest(settings.DATA_DIR))
    swept = stuck_work.told()
    return [
        by("hindsight_stuck", "Work that is due or under way far too long.", "work", _stuck(swept)),
        one("hindsight_sweep_age_seconds", "How long ago the sweep of each minute ran.", swept.age if swept else 0.0),
        by("hindsight_queue_waiting", "Tasks that no worker has taken.", "queue", _column(queues, 0)),
        by("hindsight_queue_taken", "Tasks that a worker has.", "queue", _column(queues, 1)),
        by("hindsight_queue_oldest_seconds", "Age of the oldest waiting task.", "queue", _column(queues, 2)),
        by("hindsight_database_connections", "Connections to the database, by state.", "state", connections),
        one("hindsight_database_connections_max", "Connections that the server allows.", most_connections),
        one("hindsight_database_size_bytes", "What the database takes on its disk.", size),
        one("hindsight_data_disk_free_bytes", "Room left where the data folder is.", disk.free),
        one("hindsight_data_disk_size_bytes", "Size of the disk where the data folder is.", disk.total),
    ]


def _stuck(swept: stuck_work.Told | None) -> dict[str, float]:
    counts = swept.counts if swept else {}
    return {work: float(counts.get(work, 0)) for work in ("reflections", "jobs")}


def _nearest(folder: Path) -> Path:
    """The folder, or where it would be made: with a database and a key of the operator's nothing needs it."""
    return next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())


def _column(rows: dict[str, tuple], place: int) -> dict[str, float]:
    return {name: float(row[place]) for name, row in rows.items()}
