"""Weeks as people live them: ISO weeks in a team's own time zone. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

# When the week's sample is drawn unless the team's policy says otherwise: Monday at 06:00, the team's time.
OPENING_DAY, OPENING_HOUR = 0, 6


@dataclass(frozen=True, slots=True)
class Week:
    """One ISO week. All moments are aware and in the team's time zone; `ends` is next Monday 00:00."""

    name: str  # "2026-W49"
    begins: datetime
    opens: datetime
    ends: datetime


def week_of(moment: datetime, time_zone: str, opening_day: int = OPENING_DAY, opening_hour: int = OPENING_HOUR) -> Week:
    """Return the week that `moment` (aware) falls into, as a clock in `time_zone` shows it. Day 0 is Monday."""
    zone = ZoneInfo(time_zone)
    day = moment.astimezone(zone).date()
    year, number, weekday = day.isocalendar()
    monday = day - timedelta(days=weekday - 1)
    begins = datetime.combine(monday, time.min, zone)
    return Week(
        name=f"{year}-W{number:02}",
        begins=begins,
        # By the wall clock, so that a week with a clock change still opens at six and ends at midnight.
        opens=datetime.combine(monday + timedelta(days=opening_day), time(opening_hour), zone),
        ends=datetime.combine(monday + timedelta(days=7), time.min, zone),
    )


def opening_after(
    moment: datetime, time_zone: str, opening_day: int = OPENING_DAY, opening_hour: int = OPENING_HOUR
) -> datetime:
    """Return the next opening at or after `moment`, in `time_zone`: by default a Monday at 06:00."""
    this = week_of(moment, time_zone, opening_day, opening_hour)
    return this.opens if moment <= this.opens else week_of(this.ends, time_zone, opening_day, opening_hour).opens
