"""How well masking finds personal data and secrets, and how often it takes something else for them.

Input: JSON Lines with `text`, `lang`, `has_pii`, `spans[{start, end, type}]` and optionally `scope_type`
(only that type is labelled in the row) and `annotation: "partial"` (labels incomplete: only recall counts).
"""

from __future__ import annotations

import ipaddress
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memories.safety.masking import Span, SpanType, find

# The data's label → our type. Labels missing here (names, addresses, passports …) are not masked by rule.
LABELS = {
    "EMAIL": SpanType.EMAIL,
    "PHONE": SpanType.PHONE,
    "ID_CARD_CN": SpanType.ID_CARD,
    "SSN": SpanType.ID_CARD,
    "BANK_CARD": SpanType.BANK_CARD,
    "IBAN": SpanType.IBAN,
    "IP": SpanType.IP,
    "GITHUB_TOKEN": SpanType.SECRET,
    "OPENAI_API_KEY": SpanType.SECRET,
    "AWS_ACCESS_KEY": SpanType.SECRET,
    "SSH_PRIVATE_KEY": SpanType.SECRET,
    "URL_TOKEN": SpanType.SECRET,
    "PASSWORD": SpanType.SECRET,
}


@dataclass(frozen=True)
class Miss:
    """One disagreement, for reading: what was labelled or found where."""

    row: str
    kind: str  # "missed", "extra" or "look-alike"
    type: str
    value: str


def evaluate(path: Path, *, lang: str | None = None) -> dict[str, Any]:
    """Figures on one labelled file.

    `types`: per language and type the exact-span precision, recall and F1 (0..1) with their counts, and
    `recall_overlap`, where touching the labelled span is enough. `look_alikes`: texts without personal data,
    how many of them were touched, and the share. `misses`: every disagreement.
    """
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    look_alikes: Counter[str] = Counter()
    misses: list[Miss] = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if lang is None or row["lang"] == lang:
            _score_row(row, counts, look_alikes, misses)
    return {
        "types": {f"{lang} {kind}": _figures(count) for (lang, kind), count in sorted(counts.items())},
        "look_alikes": {
            "texts": look_alikes["texts"],
            "flagged": look_alikes["flagged"],
            "share": look_alikes["flagged"] / max(1, look_alikes["texts"]),
        },
        "misses": misses,
    }


def _score_row(row: dict, counts: dict, look_alikes: Counter[str], misses: list[Miss]) -> None:
    scope = row.get("scope_type")
    scope_type = LABELS.get(scope) if scope else None
    found = [span for span in find(row["text"]) if not scope or span.type == scope_type]
    labelled = [span for span in row["spans"] if span["type"] in LABELS and not _stays_by_choice(span, row)]
    if not row["has_pii"]:
        look_alikes["texts"] += 1
        look_alikes["flagged"] += bool(found)
        misses += [Miss(row["id"], "look-alike", span.type, span.value) for span in found]
    for label in labelled:
        _score_label(label, found, row, counts, misses)
    if row.get("annotation") != "partial":
        for span in found:
            if not _is_right(span, row):
                counts[row["lang"], span.type]["extra"] += 1
                if row["has_pii"]:
                    misses.append(Miss(row["id"], "extra", span.type, span.value))


def _score_label(label: dict, found: list[Span], row: dict, counts: dict, misses: list[Miss]) -> None:
    kind = LABELS[label["type"]]
    count = counts[row["lang"], kind]
    count["labelled"] += 1
    same = [span for span in found if span.type == kind]
    if any((span.start, span.end) == (label["start"], label["end"]) for span in same):
        count["exact"] += 1
    else:
        misses.append(Miss(row["id"], "missed", kind, row["text"][label["start"] : label["end"]]))
    count["overlap"] += any(span.start < label["end"] and label["start"] < span.end for span in same)


def _is_right(span: Span, row: dict) -> bool:
    return any(
        (span.start, span.end) == (label["start"], label["end"]) and LABELS.get(label["type"]) == span.type
        for label in row["spans"]
    )


def _stays_by_choice(label: dict, row: dict) -> bool:
    """Loopback, private and documentation addresses are labelled in some rows; leaving them is our choice."""
    if label["type"] != "IP":
        return False
    address = ipaddress.ip_address(row["text"][label["start"] : label["end"]])
    return not address.is_global


def _figures(count: Counter[str]) -> dict[str, float]:
    precision = count["exact"] / max(1, count["exact"] + count["extra"])
    recall = count["exact"] / max(1, count["labelled"])
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {
        "labelled": count["labelled"],
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "recall_overlap": count["overlap"] / max(1, count["labelled"]),
    }


def table(figures: dict) -> str:
    """The figures as a small text table."""
    lines = [f"{'type':<18}{'labelled':>9}{'precision':>11}{'recall':>8}{'F1':>8}{'overlap':>9}"]
    for name, row in figures["types"].items():
        lines.append(
            f"{name:<18}{row['labelled']:>9}{row['precision']:>11.3f}{row['recall']:>8.3f}{row['f1']:>8.3f}"
            f"{row['recall_overlap']:>9.3f}"
        )
    alike = figures["look_alikes"]
    lines.append(f"look-alikes flagged: {alike['flagged']} of {alike['texts']} ({alike['share']:.1%})")
    return "\n".join(lines)
