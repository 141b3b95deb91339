"""`manage.py down`: stop what `up` started."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hindsight_site import databases, embedded_db, running

GRACE = 20.0  # seconds for `up` to stop its children and the database, before it is killed


class Command(BaseCommand):
    help = "Stop the `up` that runs with the data folder, then the embedded database. Fine when nothing runs."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's protocol

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--data-dir", help="the data folder that was given to `up` (default: var)")

    def handle(self, *args: Any, **options: Any) -> None:
        found = running.end(settings.DATA_DIR, grace=GRACE)
        if databases.is_embedded():
            try:
                embedded_db.stop(settings.DATA_DIR, force=True)
            except embedded_db.EmbeddedDatabaseError as error:
                raise CommandError(str(error)) from error
        self.stdout.write(f"Stopped {found.url}." if found else f"Nothing was running with {settings.DATA_DIR}.")
