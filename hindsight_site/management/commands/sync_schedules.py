"""`manage.py sync_schedules`: put the schedules declared in code into the database."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from hindsight_site import schedules


class Command(BaseCommand):
    help = "Make the schedules in the database match those declared in hindsight_site/schedules.py."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's protocol

    def handle(self, *args: Any, **options: Any) -> None:
        done = schedules.sync()
        self.stdout.write(
            f"{len(schedules.SCHEDULES)} schedules: {done.created} created, {done.changed} changed, "
            f"{done.removed} removed."
        )
