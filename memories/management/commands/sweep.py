"""Apply the rules of life by hand: the schedule does this every hour.

manage.py sweep --team acme --dry-run
"""

from __future__ import annotations

import logging
import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from memories import team_policy
from memories.enums import Rule
from memories.lifecycle.preview import preview
from memories.lifecycle.sweep import Progress, sweep
from memories.models import SweepRun

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Apply the rules of life: fade, flag, archive, and delete what was archived long ago."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--team", help="the short name of one team; without it, all teams")
        parser.add_argument("--dry-run", action="store_true", help="say what would happen and change nothing")

    def handle(self, *, team: str | None, dry_run: bool, **options: Any) -> None:
        teams = Team.objects.filter(suspended_at=None).order_by("slug")
        if team:
            teams = teams.filter(slug=team)
            if not teams:
                raise CommandError(f"There is no team {team}.")
        examined = changed = 0
        failed: list[str] = []
        for one in teams:
            try:
                seen, done = self._preview(one) if dry_run else self._sweep(one)
            except Exception:  # whatever it is, the other teams' memories do not wait for it
                logger.exception("the rules of life failed for team %s", one.slug)
                failed.append(one.slug)
                continue
            examined, changed = examined + seen, changed + done
        what = "would change" if dry_run else "changed"
        self.stdout.write(f"{len(teams)} teams, {examined:,} memories examined, {changed:,} {what}.")
        if failed:
            raise CommandError(
                f"{len(failed)} of {len(teams)} teams failed: {', '.join(failed)}. The log says why; "
                "check_invariants finds rows that cannot be read."
            )

    def _preview(self, team: Team) -> tuple[int, int]:
        with team_transaction(team):
            found = preview(team=team, life=team_policy.of(team).life, now=timezone.now(), most=10**9)
        for effect in found.effects:
            self.stdout.write(f"{team.slug}: {effect.label}: {effect.count:,}")
            for example in effect.examples:
                self.stdout.write(f"    {example.memory} {example.reason}")
        return found.examined, found.changes

    def _sweep(self, team: Team) -> tuple[int, int]:
        run = sweep(team=team, progress=self._progress(team))
        for rule, count in run.changed.items():
            self.stdout.write(f"{team.slug}: {Rule(rule).label}: {count:,}")
        return run.examined, run.changes

    def _progress(self, team: Team) -> Progress:
        """A line that is rewritten on a terminal, with an estimate; nothing when the output is a file."""
        started = time.monotonic()

        def show(run: SweepRun) -> None:
            if not sys.stderr.isatty() or not run.examined:
                return
            left = (time.monotonic() - started) / run.examined * max(0, run.total - run.examined)
            line = f"\r{team.slug}: {run.examined:,} of {run.total:,}, {left:.0f} s left   "
            self.stderr.write(line, ending="\n" if run.examined >= run.total else "")

        return show
