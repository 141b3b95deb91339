"""Writing a team as lines, a piece at a time: a job stores the pieces, a command prints them.

Each piece is read in one short transaction and the position behind it says where the next begins, so memory
stays bounded and an interrupted export goes on. Ids grow with time: rows younger than the export are left out.
So is what reviewers of the open week may not know of each other yet.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.db import models
from django.utils import timezone

from hindsight_site.accounts import sealing
from hindsight_site.accounts.ids import new_id
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.tenancy import team_transaction
from reflection.exporting.tables import BLIND, FORMAT, VERSION, exported_fields, exported_models, person_fields

PIECE = 512 * 1024  # bytes after which a piece is closed
FETCH = 50  # rows held at once; a step is at most 64 KB
PURPOSE = "export"


@dataclass(frozen=True, slots=True)
class Position:
    """Where the next piece begins: table and last id, the digest of all lines so far, and the youngest id."""

    table: int = 0
    after: str = ""
    rows: int = 0
    digest: str = ""
    until: str = ""
    ended: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def pieces(team: Team) -> Iterator[bytes]:
    """Yield the whole file, piece by piece. Opens a transaction for each."""
    position = Position()
    while not position.ended:
        with team_transaction(team):
            data, position = piece(team, position)
        yield data


def piece(team: Team, position: Position) -> tuple[bytes, Position]:
    """The lines of the next piece and the position behind it. Call inside the team's transaction."""
    if not position.until:
        return _begin(team)
    found: list[bytes] = []
    size = 0
    tables = exported_models()
    while position.table < len(tables) and size < PIECE:
        last = None
        for row in _rows(tables[position.table], team, position).iterator(chunk_size=FETCH):
            line = _line(as_json(row))
            found.append(line)
            size, last = size + len(line), row
            position = replace(position, rows=position.rows + 1, digest=chained(position.digest, line))
            if size >= PIECE:
                break
        else:
            position = replace(position, table=position.table + 1, after="")
            continue
        position = replace(position, after=str(last.pk))
    if position.table >= len(tables) and size < PIECE:
        found.append(_line(_end(position)))
        position = replace(position, ended=True)
    return b"".join(found), position


def row_count(team: Team) -> int:
    """How many rows an export of the team holds, about."""
    return sum(model._default_manager.filter(team_id=team.pk).count() for model in exported_models())


def as_json(row: models.Model) -> dict[str, Any]:
    """One row as its line: `type`, then its columns by name; references by id, people by their address."""
    told: dict[str, Any] = {"type": row._meta.model_name}
    for field in exported_fields(type(row)):
        if field.name in person_fields(type(row)):
            person: User | None = getattr(row, field.name)
            told[field.name] = person.email if person else None
        else:
            told[field.attname] = _plain(getattr(row, field.attname))
    return told


def _begin(team: Team) -> tuple[bytes, Position]:
    header = {
        "type": "header",
        "format": FORMAT,
        "version": VERSION,
        "team": {"id": str(team.pk), "slug": team.slug, "name": team.name, "time_zone": team.time_zone},
        "made_at": timezone.now().isoformat(),
    }
    line = _line(header)
    return line, Position(digest=chained("", line), until=str(new_id()))


def _end(position: Position) -> dict[str, Any]:
    signature = sealing.sign(bytes.fromhex(position.digest), purpose=PURPOSE)
    return {"type": "end", "rows": position.rows, "digest": position.digest, "signature": signature}


def _rows(model: type[models.Model], team: Team, position: Position) -> models.QuerySet:
    rows = model._default_manager.filter(team_id=team.pk, pk__lte=uuid.UUID(position.until))
    if (blind := BLIND.get(model._meta.label)) is not None:
        rows = rows.exclude(blind)
    if position.after:
        rows = rows.filter(pk__gt=uuid.UUID(position.after))
    return rows.select_related(*person_fields(model)).order_by("pk") if person_fields(model) else rows.order_by("pk")


def _plain(value: Any) -> Any:
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def chained(digest: str, line: bytes) -> str:
    """The digest of a file so far, with one more line (and its end): each covers the ones before."""
    return hashlib.sha256(bytes.fromhex(digest) + line).hexdigest()
