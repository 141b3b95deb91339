"""Which id a row gets when it is read into a team. Pure.

The same file read twice gives the same ids, so the second time adds nothing. An id keeps the time in its
first 48 bits, so rows stay in order. Our own export read back into its own team keeps its ids.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mapped:
    """`known` maps what has a name of its own (agents, scopes, weeks) to the row that bears it here."""

    team_id: uuid.UUID
    keep: bool
    known: Mapping[str, str]

    def of(self, ident: str) -> uuid.UUID:
        """The id in this team. Raises ValueError when `ident` is none."""
        original = uuid.UUID(ident)
        if found := self.known.get(str(original)):
            return uuid.UUID(found)
        return original if self.keep else derived(self.team_id, original)


def derived(team_id: uuid.UUID, original: uuid.UUID) -> uuid.UUID:
    """A UUIDv7 with the time of `original` and the rest from a hash of team and original."""
    digest = hashlib.sha256(b"hindsight import" + team_id.bytes + original.bytes).digest()
    made = bytearray(original.bytes[:6] + digest[:10])
    made[6] = 0x70 | made[6] & 0x0F
    made[8] = 0x80 | made[8] & 0x3F
    return uuid.UUID(bytes=bytes(made))
