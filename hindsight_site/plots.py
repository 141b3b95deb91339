"""Small plots, as numbers for SVG: where each bar stands. Pure; templates/components/bars.html draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

WIDTH, HEIGHT = 560, 120  # of the drawing, in its own units
STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Bar:
    """One day: two stacked bars, `lower` standing on the floor, with what to say about them."""

    x: float
    width: float
    lower_y: float
    lower_height: float
    upper_y: float
    upper_height: float
    day: date
    lower: int
    upper: int


@dataclass(frozen=True)
class Bars:
    """A plot of days. `top` is the value at the top line."""

    bars: list[Bar]
    top: int
    total: int
    width: int = WIDTH
    height: int = HEIGHT


def days_until(today: date, count: int) -> list[date]:
    """Return `count` days in a row, the last of them `today`."""
    return [today - timedelta(days=back) for back in range(count - 1, -1, -1)]


def bars(days: Sequence[date], lower: Mapping[date, int], upper: Mapping[date, int] | None = None) -> Bars:
    """Stack `upper` on `lower` for each day; days without a value stand at zero."""
    upper = upper or {}
    values = [(day, lower.get(day, 0), upper.get(day, 0)) for day in days]
    top = round_up(max((low + up for _, low, up in values), default=0))
    slot = WIDTH / max(len(values), 1)
    return Bars(
        bars=[_bar(i * slot, slot, top, *value) for i, value in enumerate(values)],
        top=top,
        total=sum(low + up for _, low, up in values),
    )


def _bar(x: float, slot: float, top: int, day: date, lower: int, upper: int) -> Bar:
    low, up = lower / top * HEIGHT, upper / top * HEIGHT
    return Bar(
        x=round(x + slot * 0.12, 2),
        width=round(slot * 0.76, 2),
        lower_y=round(HEIGHT - low, 2),
        lower_height=round(low, 2),
        upper_y=round(HEIGHT - low - up, 2),
        upper_height=round(up, 2),
        day=day,
        lower=lower,
        upper=upper,
    )


def round_up(value: float) -> int:
    """Return the next 1, 2 or 5 times a power of ten, at least 1."""
    size = 1
    while True:
        for step in STEPS:
            if step * size >= value:
                return step * size
        size *= 10
