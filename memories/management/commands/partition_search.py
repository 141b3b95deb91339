"""Put the search tables into hash partitions by team, or make them whole again, while everything goes on.

Worth it from some ten million memories on, or where one PostgreSQL has to vacuum and back up in smaller parts; see
docs/scaling.md for what it brings and what not. Needs the owner of the tables and room for a second copy of them.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import ProgrammingError

from memories.search import partitions


class Command(BaseCommand):
    help = "Convert the search tables into hash partitions by team, or back (--partitions 0). Reversible."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--partitions", type=int, required=True, help="how many for each of the two tables; 0: whole tables"
        )

    def handle(self, **options: Any) -> None:
        quiet = options["verbosity"] == 0
        try:
            changed = partitions.convert(
                options["partitions"], lambda what: None if quiet else self.stdout.write(f"{what} …")
            )
        except (ValueError, partitions.Busy) as error:
            raise CommandError(str(error)) from error
        except ProgrammingError as error:
            if getattr(error.__cause__, "sqlstate", "") == "42501":  # insufficient_privilege
                raise CommandError("Only the owner of the tables can do this: set DATABASE_OWNER_URL.") from error
            raise
        for table in partitions.TABLES:
            number = partitions.count(table)
            self.stdout.write(f"{table}: {f'{number} partitions' if number else 'one table'}.")
        if changed:
            self.stdout.write("Now run: python manage.py vector_indexes (teams above 20,000 memories).")
