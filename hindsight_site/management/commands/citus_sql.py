"""Print the SQL that spreads the tables over a Citus cluster by team. Changes nothing."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hindsight_site import citus


class Command(BaseCommand):
    help = "Print the SQL that distributes the tables over a Citus cluster by team (see docs/scaling.md)."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = citus.plan(citus.read())
        except citus.NotReady as error:
            raise CommandError(str(error)) from error
        self.stdout.write(citus.script(found), ending="")
