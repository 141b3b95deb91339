"""`manage.py restore`: a backup into an empty database."""

from __future__ import annotations

import signal
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from hindsight_site import databases
from hindsight_site.backup import manifest as manifests
from hindsight_site.backup.manifest import BackupError, Manifest
from hindsight_site.backup.restoring import Consent, check_code, check_key, restore


class Command(BaseCommand):
    help = (
        "Check a backup and put it into an empty database, all or nothing; then check what must hold between the rows. "
        "Ends with 1 when something is amiss."
    )
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's protocol

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", help="the file that `manage.py backup` made")
        parser.add_argument("--check", action="store_true", help="only see whether the file can be restored here")
        parser.add_argument("--force", action="store_true", help="drop the tables that are in the database first")
        parser.add_argument(
            "--without-key", action="store_true", help="restore although SECRET_KEY is another: sealed rows stay closed"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: nothing half-done stays
        begun = time.monotonic()
        consent = Consent(lose_present=options["force"], without_key=options["without_key"])
        try:
            with manifests.open_backup(Path(options["path"]).expanduser()) as archive:
                manifest = manifests.read(archive)
                if options["check"]:
                    check_key(manifest, consent)
                    check_code(manifest)
                    manifests.verify(archive, manifest)
                else:
                    restore(archive, manifest, consent, self._say if options["verbosity"] else lambda line: None)
        except BackupError as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(f"The database refused: {str(error).strip()}") from error
        except KeyboardInterrupt:
            raise CommandError("Stopped. The rows come all together or not at all: run it again.") from None
        is_sound = options["check"] or self._finish()
        self.stdout.write(f"{self._summary(manifest, options['check'])} in {time.monotonic() - begun:.1f} s.")
        if not is_sound:
            raise CommandError("All rows are there, and some contradict each other, as they did where they come from.")

    def _summary(self, manifest: Manifest, only_checked: bool) -> str:
        done = "can be restored" if only_checked else "restored"
        return f"{len(manifest.contents)} tables, {manifest.rows:,} rows of {manifest.made_at} {done}"

    def _finish(self) -> bool:
        """Let the serving role read and write, and see whether what must hold between the rows does."""
        if not databases.is_embedded() and settings.DATABASE_URL != settings.APP_DATABASE_URL:
            call_command("grant_app_role", stdout=self.stdout)
        try:
            call_command("check_invariants", stdout=self.stdout)
        except SystemExit:
            return False
        return True

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
