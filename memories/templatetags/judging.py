"""Tags of the pages on which memories are judged: where two texts differ, and which words gave an alarm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from hindsight_site import readable
from memories.enums import ConflictReason
from memories.safety.screening.glossary import MEANING

register = template.Library()


@register.simple_tag
def only_here(text: str, other: str) -> SafeString:
    """Write `text` with what `other` does not say emphasised; as it is when the two have little in common."""
    pieces = readable.difference(other, text)
    same = sum(len(piece.text) for piece in pieces if piece.effect == "same")
    if 2 * same < max(len(text), len(other)):
        return format_html("{}", text)
    own = [piece for piece in pieces if piece.effect != "removed"]
    return format_html_join("", "{}", ((_emphasised(piece),) for piece in own))


def _emphasised(piece: readable.Piece) -> SafeString:
    return format_html('<em class="differs">{}</em>' if piece.effect == "added" else "{}", piece.text)


@register.simple_tag
def alarmed(text: str, findings: Iterable[Mapping[str, Any]]) -> SafeString:
    """Write `text`, escaped, with the places of `findings` (start, end) marked; overlapping ones are one mark."""
    parts, at = [], 0
    for start, end in _merged(findings, len(text)):
        parts += [format_html("{}", text[at:start]), format_html("<mark>{}</mark>", text[start:end])]
        at = end
    return format_html_join("", "{}", ((part,) for part in [*parts, format_html("{}", text[at:])]))


def _merged(findings: Iterable[Mapping[str, Any]], length: int) -> list[tuple[int, int]]:
    spans = sorted((max(0, int(f["start"])), min(length, int(f["end"]))) for f in findings)
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


@register.filter
def alarms(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the findings mean, each once."""
    return list(dict.fromkeys(MEANING.get(f["name"], str(f["name"])) for f in findings))


@register.filter
def conflict_words(note: str) -> str:
    """Why two memories contradict each other, from the note of their edge."""
    return ConflictReason(note).label if note in ConflictReason.values else note
