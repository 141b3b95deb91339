"""Where the marks of a weekly chart stand, as numbers and paths for SVG. Pure; review/chart.html draws them.

The drawing stretches to the page's width, so that nothing in it may depend on its proportions: dots are lines
of no length with round ends, and all strokes keep their width. Words and scales stand beside it as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 1000, 100  # of the drawing, in its own units
BAND = 0.34  # of a week's width
TOPS = (0.2, 0.4, 0.8, 1.0)  # what the top line can stand for; a quarter of each is a round percentage


@dataclass(frozen=True, slots=True)
class Value:
    """One week's share and what goes with it; all shares in 0..1. `share` None: nothing to draw."""

    week: str
    share: float | None
    told: str  # what a reader hears of this week
    low: float | None = None  # its interval
    high: float | None = None
    limit_low: float | None = None  # where chance alone would keep it
    limit_high: float | None = None
    few: bool = False
    alert: bool = False
    mark: str = ""  # something that changed this week


@dataclass(frozen=True, slots=True)
class Dot:
    """One week: a dot with its band. `told` is its tooltip."""

    x: float
    y: float
    band_x: float
    band_y: float
    band_width: float
    band_height: float
    told: str
    few: bool
    alert: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """A line through the week in which something changed."""

    x: float
    told: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of weeks. `line` joins the weeks with enough judgements, `limits` are steps, `top` is the top line."""

    dots: tuple[Dot, ...]
    line: str
    limits: str
    marks: tuple[Mark, ...]
    weeks: tuple[str, ...]
    top: float = 1.0
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def ticks(self) -> list[float]:
        """The shares of the horizontal lines, from the top."""
        return [self.top * quarter / 4 for quarter in range(4, -1, -1)]

    @property
    def grid(self) -> list[float]:
        """The heights of the horizontal lines."""
        return [y_of(tick, self.top) for tick in self.ticks]


def chart(values: Sequence[Value], *, whole: bool = False) -> Chart:
    """Place every week's value from left to right. `whole`: the top line is 100 %, else as low as the values allow."""
    slot = WIDTH / max(len(values), 1)
    top = 1.0 if whole else _top(values)
    return Chart(
        dots=tuple(_dot(at, slot, top, value) for at, value in enumerate(values) if value.share is not None),
        line=_line(values, slot, top),
        limits=" ".join(_steps(at, slot, top, value) for at, value in enumerate(values) if value.limit_low is not None),
        marks=tuple(Mark(_middle(at, slot), value.mark) for at, value in enumerate(values) if value.mark),
        weeks=tuple(value.week for value in values),
        top=top,
    )


def _top(values: Sequence[Value]) -> float:
    ends = [end for value in values for end in (value.share, value.high) if end is not None]
    return next(top for top in TOPS if top >= max(ends, default=0.0))


def y_of(share: float, top: float = 1.0) -> float:
    """Return the height of a share: `top` is the top line, 0 the floor."""
    return round((1 - share / top) * HEIGHT, 2)


def _middle(at: int, slot: float) -> float:
    return round((at + 0.5) * slot, 2)


def _dot(at: int, slot: float, top: float, value: Value) -> Dot:
    assert value.share is not None  # noqa: S101 - the caller has looked
    low = value.share if value.low is None else value.low
    high = value.share if value.high is None else value.high
    return Dot(
        x=_middle(at, slot),
        y=y_of(value.share, top),
        band_x=round((at + 0.5 - BAND / 2) * slot, 2),
        band_y=y_of(high, top),
        band_width=round(BAND * slot, 2),
        band_height=round(y_of(low, top) - y_of(high, top), 2),
        told=value.told,
        few=value.few,
        alert=value.alert,
    )


def _line(values: Sequence[Value], slot: float, top: float) -> str:
    """Join the weeks that have enough, whatever lies between them."""
    points = [
        f"{_middle(at, slot)} {y_of(value.share, top)}"
        for at, value in enumerate(values)
        if value.share is not None and not value.few
    ]
    return f"M{' L'.join(points)}" if len(points) > 1 else ""


def _steps(at: int, slot: float, top: float, value: Value) -> str:
    """Both limits of one week, as wide as the week."""
    left, right = round(at * slot, 2), round((at + 1) * slot, 2)
    ends = [end for end in (value.limit_low, value.limit_high) if end is not None]
    return " ".join(f"M{left} {y_of(end, top)}H{right}" for end in ends)
