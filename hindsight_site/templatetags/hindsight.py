"""Tags and filters of the pages: icons, marks, numbers, times and quotes."""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from django import template
from django.forms import BoundField
from django.utils import timezone
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from hindsight_site import readable
from hindsight_site.marks import Mark, mark_of

register = template.Library()

ICONS = Path(__file__).resolve().parent.parent / "static" / "icons"


@cache
def _drawing(name: str) -> str:
    """Return what stands between <svg …> and </svg> in an icon of our own."""
    text = (ICONS / f"{name}.svg").read_text(encoding="utf-8")
    return text[text.index(">") + 1 : text.rindex("</svg>")]


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """Draw an icon in the text's colour: `{% icon "check" %}`. It speaks only with a label."""
    voice = format_html('role="img" aria-label="{}"', label) if label else mark_safe('aria-hidden="true"')  # noqa: S308
    return format_html(
        '<svg class="icon" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.75" '
        'stroke-linecap="round" stroke-linejoin="round" {}>{}</svg>',
        voice,
        mark_safe(_drawing(name)),  # noqa: S308 - our own files
    )


@register.inclusion_tag("components/mark.html")
def mark(family: str, value: str, boxed: bool = False) -> dict[str, Any]:
    """Show a state as icon and word: `{% mark "status" memory.status boxed=True %}`."""
    return {"mark": mark_of(family, value), "boxed": boxed}


@register.filter
def look(value: str, family: str) -> Mark:
    """Return the icon, word and tone of a state: `{% with role=step.role|look:"role" %}`."""
    return mark_of(family, value)


@register.filter
def percent(value: float | None, digits: int = 0) -> str:
    """Write a share of 0..1 as a percentage; an em dash when there is none."""
    return "—" if value is None else f"{value * 100:.{digits}f}\u202f%"


@register.filter
def points(value: float) -> str:
    """Write a difference of shares in percentage points, with its sign."""
    return f"{value * 100:+.0f}\u202fpoints".replace("-", "\u2212")


@register.filter
def dollars(value: float | None) -> str:
    """Write US dollars with as many digits as a small amount needs; an em dash when unknown."""
    if value is None:
        return "—"
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}".rstrip("0")


@register.simple_tag
def confidence(memory: Any) -> SafeString:
    """Draw a memory's confidence: the mean of Beta(alpha, beta) and the range that holds 80 % of it."""
    likely = readable.likely(memory.confidence, memory.alpha, memory.beta)
    return format_html(
        '<span class="confidence" title="{title}">'
        '<svg viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">'
        '<line class="rail" x1="0" x2="100" y1="6" y2="6" stroke-width="2" />'
        '<line class="band" x1="{low}" x2="{high}" y1="6" y2="6" stroke-width="6" stroke-linecap="butt" />'
        '<rect class="mean" x="{mean}" y="0" width="4" height="12" rx="1" /></svg>'
        '<span>{percent}</span><span class="visually-hidden">{title}</span></span>',
        title=likely.in_words,
        low=f"{likely.low * 100:.1f}",
        high=f"{likely.high * 100:.1f}",
        mean=f"{likely.mean * 96:.1f}",
        percent=percent(likely.mean),
    )


@register.simple_tag
def when(moment: datetime | None, absent: str = "never") -> SafeString | str:
    """Show a time as `<time>`: relative to now in the text, absolute in the title."""
    if moment is None:
        return absent
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(timespec="seconds"),
        f"{local:%a} {local.day} {local:%b %Y, %H:%M %Z}",
        readable.ago(local, timezone.localtime()),
    )


@register.simple_tag
def at(moment: datetime) -> SafeString:
    """Show a time as `<time>`: absolute, to the second, in the text; relative to now in the title."""
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}">{} {}</time>',
        moment.isoformat(timespec="seconds"),
        readable.ago(local, timezone.localtime()),
        local.day,
        f"{local:%b %Y, %H:%M:%S}",
    )


@register.simple_tag
def time_zone() -> str:
    """Name the reader's time zone, for pages whose times are absolute: Europe/Paris."""
    return timezone.get_current_timezone_name()


@register.filter
def took(seconds: float | None) -> str:
    """Write a duration in seconds for people: 0.4 s, 12 s, 3 min, 2 h."""
    return "—" if seconds is None else readable.duration(seconds)


@register.filter
def highlight(text: str, query: str) -> SafeString:
    """Mark every word of `query` in `text`, whatever its case."""
    words = sorted({re.escape(word) for word in (query or "").split()}, key=len, reverse=True)
    if not words:
        return conditional_escape(text)
    parts = re.split(f"({'|'.join(words)})", text, flags=re.IGNORECASE)
    return format_html_join("", "{}", ((_marked(part) if i % 2 else part,) for i, part in enumerate(parts)))


def _marked(part: str) -> SafeString:
    return format_html("<mark>{}</mark>", part)


@register.simple_tag
def quote_in_context(text: str, start: int, end: int, lines: int = 2) -> SafeString:
    """Mark text[start:end] and keep `lines` lines of what stands before and after it."""
    cut = readable.excerpt(text, start, end, lines)
    return format_html(
        '<span class="context">{}</span><mark>{}</mark><span class="context">{}</span>',
        cut.before,
        cut.quote,
        cut.after,
    )


@register.simple_tag
def difference(before: str, after: str) -> SafeString:
    """Show how one text became another, with <ins> and <del>."""
    element = {"same": "{}", "added": "<ins>{}</ins>", "removed": "<del>{}</del>"}
    pieces = readable.difference(before, after)
    return format_html_join("", "{}", ((format_html(element[p.effect], p.text),) for p in pieces))


@register.simple_tag
def likeness(other: str, own: str) -> SafeString:
    """Show another text beside one's own: what differs where most is the same, else the text as it is."""
    pieces = readable.difference(other, own)
    same = sum(len(piece.text) for piece in pieces if piece.effect == "same")
    return difference(other, own) if 2 * same >= max(len(other), len(own)) else format_html("{}", other)


@register.filter
def told(value: Any) -> str:
    """Write a value of a structure as a reader would: `March → 2026-03` for a change, commas in a list."""
    if isinstance(value, dict):
        if set(value) == {"from", "to"}:
            return f"{told(value['from'])} → {told(value['to'])}"
        return ", ".join(f"{key} {told(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(told(inner) for inner in value)
    return "—" if value is None else str(value)


@register.simple_tag(takes_context=True)
def with_query(context: dict[str, Any], key: str, value: Any) -> str:
    """Return the query string of this page with one parameter set, or removed when the value is empty."""
    query = context["request"].GET.copy()
    query.pop("cursor", None)
    query.pop(key, None)
    if value not in ("", None):
        query[key] = value
    return f"?{query.urlencode()}" if query else "?"


@register.filter
def verb_words(verb: str) -> str:
    """Put the verb of an audit event into words: "memory.verdict_undone" is "Verdict undone"."""
    return verb.rpartition(".")[2].replace("_", " ").capitalize()


@register.filter
def initial(name: Any) -> str:
    """Return the first letter of a name, for a round avatar."""
    return str(name).strip()[:1] or "?"


@register.filter
def without_placeholder(field: BoundField) -> SafeString:
    """Draw a form field without its placeholder: allauth's repeat the label, which stands above the field."""
    return field.as_widget(attrs={"placeholder": False})


@register.filter
def get(mapping: dict[str, Any], key: str) -> Any:
    """Look a key up that is itself a variable: `{{ counts|get:tier }}`."""
    return mapping.get(key)
