"""Fill the vector index that the settings name from PostgreSQL, which holds the truth, or bring it in step again.

    manage.py reindex                 every team: what is missing or stale is written, what should not be there goes
    manage.py reindex --team acme
    manage.py reindex --drop          throw our collections away first and write everything anew

Recall goes on meanwhile. Stop it with Ctrl-C and run it again: it goes on with what is missing.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from hindsight_site.accounts.models import Team
from memories import vector_drift, vector_outbox
from memories.search import engines
from memories.search.engines import Engine, EngineError

LONGEST_WAIT_SECONDS = 1.5 * vector_outbox.CLAIM.total_seconds()  # for a worker that died with its claim


class Command(BaseCommand):
    help = "Fill the vector index that VECTOR_INDEX names from PostgreSQL; it goes on where it was stopped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--team", help="only the team with this slug")
        parser.add_argument("--drop", action="store_true", help="throw the index of all teams away first")

    def handle(self, *, team: str | None, drop: bool, **_: Any) -> None:
        if not engines.is_external():
            self.stdout.write("VECTOR_INDEX is pgvector: PostgreSQL's own rows are searched, nothing to rebuild.")
            return
        if team and drop:
            raise CommandError("--drop takes the vectors of every team, so it goes without --team.")
        teams = list(Team.objects.filter(slug=team) if team else Team.objects.order_by("slug"))
        if not teams:
            raise CommandError(f"There is no team {team}." if team else "There is no team yet.")
        engine = engines.current()
        try:
            if drop:
                for model_id in engine.models():
                    engine.drop(model_id=model_id)
            looked, mended = self._all(teams, engine)
        except EngineError as error:
            raise CommandError(f"{error} What is done stays done; run it again to go on.") from error
        except KeyboardInterrupt:
            raise CommandError("Stopped. What is done stays done; run it again to go on.") from None
        self.stdout.write(f"{looked:,} vectors compared with {settings.VECTOR_INDEX}, {mended:,} put right.")

    def _all(self, teams: list[Team], engine: Engine) -> tuple[int, int]:
        total = sum(vector_drift.total(team) for team in teams)
        self.stdout.write(f"{total:,} vectors in PostgreSQL.")
        show = self._progress(total)
        looked = mended = 0
        for team in teams:
            for drift in vector_drift.look(team, engine):
                mended += vector_drift.mend(team, engine, drift)
                looked += drift.looked
                show(drift.looked)
            if left := vector_outbox.tell_now(team, seconds=LONGEST_WAIT_SECONDS):
                self.stdout.write(f"{team.slug}: {left:,} memories wait; a worker goes on with them.")
        return looked, mended

    def _progress(self, total: int) -> Callable[[int], None]:
        """A line that is rewritten on a terminal, with an estimate; nothing when the output is a file."""
        began, done = time.monotonic(), 0

        def show(more: int) -> None:
            nonlocal done
            done += more
            if not sys.stderr.isatty() or not done:
                return
            left = (time.monotonic() - began) / done * max(total - done, 0)
            self.stderr.write(f"\r{done:,}/{total:,}, {left:.0f} s left   ", ending="\n" if done >= total else "")

        return show
