"""The days that people type into a page's filters."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone
from django.utils.dateparse import parse_date


def beginning_of(day: str) -> datetime | None:
    """Return the beginning of a day (2026-03-01) in the reader's time zone; None for what is no day."""
    try:
        parsed = parse_date(day)
        # One day of room at either end of the calendar, for the zone and the day that may be added.
        if parsed is None or not 1 < parsed.year < 9999:
            return None
        return timezone.make_aware(datetime.combine(parsed, datetime.min.time()))
    except ValueError:
        return None
