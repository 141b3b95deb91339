"""Whether a file is our own export, unchanged. Pure but for the site's key."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hindsight_site.accounts import sealing
from reflection.exporting.tables import FORMAT, VERSION
from reflection.exporting.writing import PURPOSE, chained


def header_of(line: bytes) -> dict[str, Any] | None:
    """The header of a file of our own format, or None when its first line is none that we can read."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    ours = isinstance(found, dict) and found.get("type") == "header" and found.get("format") == FORMAT
    return found if ours and found.get("version") == VERSION else None


def is_our_own(lines: Iterable[bytes]) -> bool:
    """Whether every line is covered by a signature that this site made, and nothing stands behind it."""
    digest, signed = "", False
    for line in lines:
        if signed and line.strip():
            return False
        if line.startswith(b'{"type":"end"'):
            signed = _signs(line, digest)
            if not signed:
                return False
        elif not signed:
            digest = chained(digest, line + b"\n")
    return signed


def _signs(line: bytes, digest: str) -> bool:
    try:
        end = json.loads(line)
        claimed, signature = end["digest"], str(end["signature"])
    except (ValueError, KeyError):
        return False
    return claimed == digest and sealing.signed_here(bytes.fromhex(digest), signature, purpose=PURPOSE)
