"""What a backup holds: written into it last, believed only where the checksums agree."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

FORMAT = 1
NAME = "manifest.json"
CHUNK = 1 << 20  # bytes read at once
KEY_PURPOSE = "backup made here"  # see `accounts.sealing.sign`: tells one SECRET_KEY from another, and no more


class BackupError(Exception):
    """A backup cannot be made, read or restored. One line that says what to do."""


@dataclass(frozen=True, slots=True)
class Content:
    """The rows of one table: its columns in the order of the file, how many rows, SHA-256 of the file."""

    table: str
    columns: tuple[str, ...]
    rows: int
    sha256: str

    @property
    def member(self) -> str:
        """Its name in the file."""
        return f"tables/{self.table}.copy"


@dataclass(frozen=True, slots=True)
class Manifest:
    """`made_at`: UTC, the moment that the rows are of. `version`: of this program. `key`: see KEY_PURPOSE."""

    format: int
    made_at: str
    version: str
    postgresql: str
    key: str
    migrations: tuple[tuple[str, str], ...]
    contents: tuple[Content, ...]

    @property
    def rows(self) -> int:
        return sum(content.rows for content in self.contents)


def to_json(manifest: Manifest) -> str:
    return json.dumps(asdict(manifest), indent=1)


def from_json(text: str | bytes) -> Manifest:
    """Raises BackupError for what is none, or of a newer format."""
    try:
        given = json.loads(text)
        if given["format"] != FORMAT:
            raise BackupError(f"The backup is of format {given['format']}, not {FORMAT}: use the version that made it.")
        contents = tuple(
            Content(one["table"], tuple(one["columns"]), int(one["rows"]), one["sha256"]) for one in given["contents"]
        )
        migrations = tuple((app, name) for app, name in given["migrations"])
        told = {name: str(given[name]) for name in ("made_at", "version", "postgresql", "key")}
        return Manifest(format=FORMAT, migrations=migrations, contents=contents, **told)
    except (KeyError, TypeError, ValueError) as error:
        raise BackupError("The backup's manifest cannot be read: the file is damaged.") from error


def open_backup(path: Path) -> zipfile.ZipFile:
    """Raises BackupError when `path` is no backup."""
    try:
        return zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or "it is no backup, or was cut short"
        raise BackupError(f"{path} cannot be read: {reason}.") from error


def read(archive: zipfile.ZipFile) -> Manifest:
    """Raises BackupError."""
    try:
        return from_json(archive.read(NAME))
    except (KeyError, zipfile.BadZipFile) as error:
        raise BackupError("There is no manifest in the file: it is no backup, or not a whole one.") from error


def verify(archive: zipfile.ZipFile, manifest: Manifest) -> None:
    """Read the whole file once. Raises BackupError where it differs from the manifest."""
    for content in manifest.contents:
        digest, rows = hashlib.sha256(), 0
        try:
            with archive.open(content.member) as member:
                for chunk in chunks(member):
                    digest.update(chunk)
                    rows += chunk.count(b"\n")
        except (KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise BackupError(f"The rows of {content.table} cannot be read: the file is damaged.") from error
        if (digest.hexdigest(), rows) != (content.sha256, content.rows):
            raise BackupError(f"The rows of {content.table} are not those that were saved: the file is damaged.")


def chunks(member: IO[bytes]) -> Iterator[bytes]:
    """The content of a member, piece by piece."""
    while chunk := member.read(CHUNK):
        yield chunk
