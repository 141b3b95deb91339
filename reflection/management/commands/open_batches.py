"""Open the week's review batches and close last week's: the schedule does this every hour."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from reflection.review.sampling import open_due


class Command(BaseCommand):
    help = "Open this week's review batch for every team that has none, and close those whose week is over."

    def handle(self, **options: Any) -> None:
        self.stdout.write(f"Review batches: {open_due(timezone.now())}.")
