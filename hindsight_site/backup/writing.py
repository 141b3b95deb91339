"""`manage.py backup`: every row of one moment into one file."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from django.db import connection, transaction

from hindsight_site import VERSION
from hindsight_site.accounts import sealing
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import enter_team
from hindsight_site.backup import tables
from hindsight_site.backup.manifest import FORMAT, KEY_PURPOSE, NAME, BackupError, Content, Manifest, to_json
from hindsight_site.backup.tables import Table
from hindsight_site.schema_state import unapplied_migrations

Say = Callable[[str], None]

ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"


def backup(path: Path, say: Say) -> Manifest:
    """Write a backup to `path`, which appears when it is whole and safe on its disk; 0600.

    Others may read and write meanwhile; only a migration waits. `say` hears of each table. Call outside any
    transaction. Raises BackupError, and OSError where the disk refuses.
    """
    _check_free(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file:
            manifest = _write(file, say)
            file.flush()
            os.fsync(file.fileno())
        _check_free(path)  # another may have come meanwhile
        draft.rename(path)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    return manifest


def _check_free(path: Path) -> None:
    if path.exists():
        raise BackupError(f"{path} exists: choose another name, or move it away.")


def _write(file: IO[bytes], say: Say) -> Manifest:
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute(ONE_MOMENT)
            cursor.execute("SET LOCAL statement_timeout = 0")
        if unapplied_migrations():
            raise BackupError("The database is not migrated to this version: run `manage.py migrate` first.")
        teams = list(Team.objects.order_by("pk"))
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            contents = []
            for table in tables.all_tables():
                contents.append(_write_table(archive, table, teams))
                say(f"{table.name}: {contents[-1].rows:,} rows")
            manifest = _manifest(tuple(contents))
            archive.writestr(NAME, to_json(manifest))
    return manifest


@dataclass(slots=True)
class _Counting:
    """Writes on, and keeps count: every row is one line."""

    to: IO[bytes]
    rows: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def write(self, data: bytes | memoryview) -> None:
        data = bytes(data)
        self.to.write(data)
        self.rows += data.count(b"\n")
        self.digest.update(data)


def _write_table(archive: zipfile.ZipFile, table: Table, teams: Sequence[Team]) -> Content:
    if table.fenced and "team_id" not in table.columns:
        raise BackupError(f"The role may not read {table.name}: connect as the owner of the tables.")
    with archive.open(Content(table.name, (), 0, "").member, "w", force_zip64=True) as member:
        out = _Counting(member)
        if not table.fenced:
            _copy(table, None, out)
        for team in teams if table.fenced else ():
            enter_team(team)
            _copy(table, team, out)
    return Content(table.name, table.columns, out.rows, out.digest.hexdigest())


def _copy(table: Table, team: Team | None, out: _Counting) -> None:
    with (
        connection.cursor() as cursor,
        cursor.copy(tables.copy_out(table, team.pk if team else None)) as rows,
    ):
        for data in rows:
            out.write(data)


def _manifest(contents: tuple[Content, ...]) -> Manifest:
    with connection.cursor() as cursor:
        cursor.execute("SELECT now(), current_setting('server_version')")
        moment, postgresql = cursor.fetchone()
        cursor.execute("SELECT app, name FROM django_migrations ORDER BY app, name")
        migrations = tuple((app, name) for app, name in cursor.fetchall())
    return Manifest(
        format=FORMAT,
        made_at=moment.astimezone(UTC).isoformat(timespec="seconds"),
        version=VERSION,
        postgresql=postgresql,
        key=sealing.sign(b"", purpose=KEY_PURPOSE),
        migrations=migrations,
        contents=contents,
    )


def name_for(now: datetime) -> str:
    """What a backup is called when nobody says: hindsight-20261130T221500Z.zip."""
    return f"hindsight-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}.zip"
