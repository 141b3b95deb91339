"""What a candidate must be, as SQL over the memory's own row: a filter comes before the limit, always."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memories.gating import Gates


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Kinds, tiers and tags asked for; still valid at `now`; working memory of this session only; past the gates."""

    now: datetime
    kinds: Sequence[str] = ()
    tiers: Sequence[str] = ()
    tags: Sequence[str] = ()
    session_id: str = ""
    as_of: datetime | None = None
    include_archived: bool = False
    gates: Gates = field(default_factory=Gates)

    def sql(self, search: str) -> tuple[str, dict[str, Any]]:
        """Return a condition on the search table's alias `search`, and its named parameters."""
        condition, params = self.on_memory()
        joined = f"m.team_id = %(team)s AND m.id = {search}.memory_id AND {condition}"
        return f"EXISTS (SELECT 1 FROM memories_memory m WHERE {joined})", params  # noqa: S608 - constants

    def on_memory(self) -> tuple[str, dict[str, Any]]:
        """Return a condition on `m`, the memory's own row, and its named parameters."""
        conditions = [
            "(m.tier <> 'working' OR m.session_id = %(session)s)",
            # Past its time it is gone, whatever moment is asked about, and archived or not.
            "(m.tier <> 'working' OR m.expires_at IS NULL OR m.expires_at > now())",
            "(m.valid_from IS NULL OR m.valid_from <= %(now)s)",
        ]
        if not self.include_archived:
            conditions += [
                "(m.expires_at IS NULL OR m.expires_at > %(now)s)",
                "(m.valid_until IS NULL OR m.valid_until > %(now)s)",
            ]
        params: dict[str, Any] = {"now": self.now, "session": self.session_id}
        for column, values in (("kind", self.kinds), ("tier", self.tiers)):
            if values:
                conditions.append(f"m.{column} = ANY(%({column}s)s)")
                params[f"{column}s"] = [str(value) for value in values]
        if self.tags:
            conditions.append("m.tags @> %(tags)s::varchar[]")
            params["tags"] = list(self.tags)
        if self.as_of is not None:
            conditions.append("m.created_at <= %(now)s")
        held, gated = self.gates.sql()
        conditions.append(f"NOT {held}")
        params |= gated
        return " AND ".join(conditions), params  # made of constants; values go in as parameters
