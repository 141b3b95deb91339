"""Write a whole team into one signed file of JSON Lines.

manage.py export_team acme --output acme.jsonl
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hindsight_site.accounts import audit
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from reflection.exporting import writing


class Command(BaseCommand):
    help = "Write a whole team into one file of JSON Lines: lossless, without secrets, signed by this site."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("team", help="short name of the team")
        parser.add_argument("--output", help="the file to write (default: standard output); it must not exist")

    def handle(self, **options: Any) -> None:
        team = Team.objects.filter(slug=options["team"]).first()
        if team is None:
            raise CommandError(f"There is no team {options['team']}.")
        size = self._write(team, options["output"])
        with team_transaction(team):
            after = audit.fingerprint({"bytes": size})
            audit.record(
                team=team,
                by=audit.system("export_team"),
                verb="team.exported",
                on=team,
                after=after,
                detail={"bytes": size},
            )
        self.stderr.write(f"{size:,} bytes written.")

    def _write(self, team: Team, output: str | None) -> int:
        if output is None:
            return sum(sys.stdout.buffer.write(piece) for piece in writing.pieces(team))
        path = Path(output)
        try:
            # Readable by its owner alone: it holds everything the team knows.
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise CommandError(f"{path} exists already; name another file.") from None
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}.") from None
        with os.fdopen(handle, "wb") as file:
            return sum(file.write(piece) for piece in writing.pieces(team))
