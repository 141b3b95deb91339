"""Embed memories with another model, online.

    manage.py reembed                      every team, with the model that the settings name
    manage.py reembed --team acme
    manage.py reembed --model local        prepare another model before the settings name it

Recall goes on meanwhile, with both models. Stop it with Ctrl-C and run it again: it goes on where it was.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hindsight_site.accounts.models import Team
from memories import reembedding
from memories.embeddings import Embedder, EmbeddingError, embedder_of, get_embedder


class Command(BaseCommand):
    help = "Embed memories with the model that the settings name now, while everything goes on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--team", help="only the team with this slug")
        parser.add_argument(
            "--model", help="another model than the settings name: local, or name@dimensions at the same endpoint"
        )

    def handle(self, *, team: str | None, model: str | None, **_: Any) -> None:
        teams = list(Team.objects.filter(slug=team) if team else Team.objects.order_by("slug"))
        if not teams:
            raise CommandError(f"There is no team {team}." if team else "There is no team yet.")
        try:
            embedder = embedder_of(model) if model else get_embedder()
            done, retired = self._all(teams, embedder)
        except EmbeddingError as error:
            raise CommandError(f"{error} What is done stays done; run it again to go on.") from error
        except KeyboardInterrupt:
            raise CommandError("Stopped. What is done stays done; run it again to go on.") from None
        self.stdout.write(
            f"{done:,} memories embedded with {embedder.model_id}, {retired:,} vectors of other models removed."
        )

    def _all(self, teams: list[Team], embedder: Embedder) -> tuple[int, int]:
        total = sum(reembedding.missing(team, embedder.model_id) for team in teams)
        self.stdout.write(f"{total:,} memories have no vector of {embedder.model_id}.")
        show = self._progress(total)
        done = retired = 0
        for team in teams:
            done += reembedding.reembed(team, embedder, show)
            retired += reembedding.retire(team, embedder.model_id)
        return done, retired

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
