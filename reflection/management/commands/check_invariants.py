"""Look for rows that contradict each other, and mend them where it is safe: nightly without mending."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hindsight_site.accounts.models import Team
from reflection.invariants.running import check_team


class Command(BaseCommand):
    help = "Check what must always hold between the tables of a team. Ends with 1 when something is left to mend."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--team", help="short name of one team; without it all")
        parser.add_argument("--repair", action="store_true", help="mend what follows from other rows")

    def handle(self, **options: Any) -> None:
        teams = Team.objects.filter(slug=options["team"]) if options["team"] else Team.objects.order_by("slug")
        if options["team"] and not teams:
            raise CommandError(f"There is no team {options['team']}.")
        found = mended = checked = 0
        for team in teams:
            for finding in check_team(team, mend=options["repair"]):
                checked += 1
                found, mended = found + finding.count, mended + finding.repaired
                if finding.count:
                    ids = ", ".join(str(pk) for pk in finding.examples)
                    done = f", {finding.repaired} mended" if options["repair"] else ""
                    self.stdout.write(f"{team.slug}: {finding.count} {finding.check.says}{done} ({ids})")
        self.stdout.write(f"{len(teams)} teams, {checked} checks: {found} findings, {mended} mended.")
        if found > mended:
            raise SystemExit(1)
