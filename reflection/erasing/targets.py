"""What is to be erased: read, checked, and told without saying it."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from django.db.models import TextChoices

from hindsight_site.accounts import sealing
from hindsight_site.refusals import FieldError, Invalid
from reflection.erasing.needles import Needle

MAX_IDENTIFIERS = 20
MAX_CHARS = 500


class TargetKind(TextChoices):
    """What an erasure is about."""

    PERSON = "person", "A person"
    AGENT = "agent", "An agent"
    SESSION = "session", "A session"
    TRACE = "trace", "A trace"
    TEXT = "text", "A text"


@dataclass(frozen=True, slots=True)
class Target:
    """`values`: what a person is called and known by, or the one slug, id or text."""

    kind: str
    values: tuple[str, ...]

    @property
    def needles(self) -> tuple[Needle, ...]:
        """The texts that must be nowhere afterwards. None for an agent, a session or a trace: they are known by
        their id, which may be a word that others use for something else."""
        if self.kind not in (TargetKind.PERSON, TargetKind.TEXT):
            return ()
        return tuple(Needle(value, whole=self.kind == TargetKind.PERSON) for value in self.values)

    @property
    def fingerprint(self) -> str:
        """Tells whether two erasures were about the same, to nobody but this site: a keyed hash."""
        said = json.dumps([self.kind, sorted(value.casefold() for value in self.values)]).encode()
        return sealing.sign(hashlib.sha256(said).digest(), purpose="erasure")[:32]

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "values": list(self.values)}


def target_of(kind: str, values: list[str]) -> Target:
    """Return the checked target. Raises `Invalid` for one that is none or would find nearly everything."""
    if kind not in TargetKind.values:
        raise _invalid("target", f"must be one of: {', '.join(TargetKind.values)}.")
    cleaned = [value.strip() if kind == TargetKind.SESSION else _folded(value) for value in values]
    wanted = tuple(dict.fromkeys(value for value in cleaned if value))
    if not wanted:
        raise _invalid("values", "must name what is to be erased.")
    if kind != TargetKind.PERSON and len(wanted) != 1:
        raise _invalid("values", "must hold exactly one entry; only a person may have several.")
    if len(wanted) > MAX_IDENTIFIERS:
        raise _invalid("values", f"may hold at most {MAX_IDENTIFIERS} entries.")
    for value in wanted:
        _check(kind, value)
    return Target(kind, wanted)


def _folded(value: str) -> str:
    return " ".join(unicodedata.normalize("NFC", value).split())


def _check(kind: str, value: str) -> None:
    if len(value) > MAX_CHARS:
        raise _invalid("values", f"each must be at most {MAX_CHARS} characters.")
    if "\0" in value:
        raise _invalid("values", "may not hold a NUL character.")
    if kind in (TargetKind.PERSON, TargetKind.TEXT):
        letters = [c for c in value if c.isalnum()]
        if len(letters) < (3 if value.isascii() else 2):
            raise _invalid("values", "“" + value + "” is too short: it would be found nearly everywhere.")
    if kind == TargetKind.TRACE and not re.fullmatch(r"[0-9a-fA-F-]{32,36}", value):
        raise _invalid("values", "must be the id of a trace.")


def _invalid(field: str, message: str) -> Invalid:
    return Invalid(f"{field} {message}", errors=(FieldError(field, message),))
