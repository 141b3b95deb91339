"""Tables to take along, as CSV and as JSON Lines. Pure."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

# A spreadsheet would run what begins like this, the full-width forms too.
FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n")


def safe(text: str) -> str:
    """The text as one that a spreadsheet does not run: what begins like a formula is quoted."""
    return f"'{text}" if text.startswith(FORMULA) or text.lstrip().startswith(FORMULA) else text


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write rows as CSV under their titles: numbers to six digits, nothing for None, text made `safe`."""
    out = StringIO()
    writer = csv.writer(out)
    writer.writerow([safe(title) for title in columns])
    writer.writerows([[_cell(value) for value in row] for row in rows])
    return out.getvalue()


def as_jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    """Write one JSON object a line."""
    return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else safe(str(value))
