"""Build the vector indexes of big teams and drop those that are not needed any more.

Runs every hour where the worker knows the owner of the tables (the embedded database, or one role for all).
Where it does not, run it with DATABASE_OWNER_URL set, after a large import or from time to time: without
the index recall stays right and grows slow above 20,000 memories.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from memories.search import vector_indexes


class Command(BaseCommand):
    help = "Build the vector indexes of teams above 20,000 memories, drop those of teams below 10,000."

    def handle(self, **_: Any) -> None:
        if not _may():
            raise CommandError(
                "Only the owner of the tables can build indexes: set DATABASE_OWNER_URL and run it again."
            )
        synced = vector_indexes.sync(lambda what: self.stdout.write(f"{what} …"))
        if synced.skipped:
            self.stdout.write("Another process is at it.")
        else:
            self.stdout.write(f"{len(synced.built)} built, {len(synced.dropped)} dropped.")


def _may() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_has_role(current_user, relowner, 'USAGE') FROM pg_class"
            " WHERE oid = 'memories_memoryvector'::regclass"
        )
        return bool(cursor.fetchone()[0])
