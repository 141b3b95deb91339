"""`manage.py backup`: every row into one file."""

from __future__ import annotations

import signal
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.utils import timezone

from hindsight_site.backup import writing
from hindsight_site.backup.manifest import BackupError


class Command(BaseCommand):
    help = (
        "Write all rows of one moment into a file, while the site goes on working. The file holds what people and "
        "agents said and is readable by you alone; it does not hold SECRET_KEY, without which sealed rows in it are "
        "useless: keep that elsewhere."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "path", nargs="?", default=".", help="the file, or a folder to put one into (default: here)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: nothing half-done stays
        path = Path(options["path"]).expanduser()
        path = path / writing.name_for(timezone.now()) if path.is_dir() else path
        begun = time.monotonic()
        try:
            manifest = writing.backup(path, self._say if options["verbosity"] else lambda line: None)
        except BackupError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{path} cannot be written ({error.strerror}); nothing was kept.") from error
        except DatabaseError as error:
            raise CommandError(f"The database did not give all rows; nothing was kept. {error}") from error
        except KeyboardInterrupt:
            raise CommandError("Stopped; nothing was kept.") from None
        self.stdout.write(
            f"{path}: {len(manifest.contents)} tables, {manifest.rows:,} rows, "
            f"{path.stat().st_size / 1e6:,.1f} MB in {time.monotonic() - begun:.1f} s."
        )

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
