"""Read a file into a team: our own export, mem0, Letta, vectorize Hindsight, or MCP memory.

manage.py import_team acme backup.jsonl --verified
manage.py import_team acme memory.jsonl --agent coder
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hindsight_site.accounts import audit
from hindsight_site.accounts.enums import JobStatus
from hindsight_site.accounts.jobs import running
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.refusals import Refused
from reflection.importing.running import ImportFormat, request_import
from reflection.tasks import HANDLERS

PAUSE = 0.5  # seconds between two looks while a worker has it


class Command(BaseCommand):
    help = "Read a file into a team. The same file twice adds nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("team", help="short name of the team")
        parser.add_argument("file")
        parser.add_argument("--format", choices=ImportFormat.values, default=ImportFormat.AUTO.value)
        parser.add_argument("--scope", default="", help="where memories of other programs go")
        parser.add_argument("--agent", default="", help="whose memories they are")
        parser.add_argument(
            "--verified",
            action="store_true",
            help="take our own export as it is, with its trust and history; its signature must be this site's",
        )

    def handle(self, **options: Any) -> None:
        team = Team.objects.filter(slug=options["team"], suspended_at=None).first()
        if team is None:
            raise CommandError(f"There is no team {options['team']}.")
        try:
            with Path(options["file"]).open("rb") as file, team_transaction(team):
                job = request_import(
                    team=team,
                    by=audit.system("import_team"),
                    data=iter(lambda: file.read(256 * 1024), b""),
                    format=options["format"],
                    scope=options["scope"],
                    agent=options["agent"],
                    verified=options["verified"],
                )
        except OSError as error:
            raise CommandError(f"{options['file']} cannot be read: {error.strerror}.") from None
        except Refused as refusal:
            raise CommandError(refusal.message) from None
        self._finish(team, self._run(team, job))

    def _run(self, team: Team, job: Job) -> Job:
        """Carry it on here until it has ended, whoever works on it; stopped, the worker goes on with it."""
        while job.is_open:
            if not running.run(team, job.pk, HANDLERS):
                time.sleep(PAUSE)
            with team_transaction(team):
                job = Job.objects.of(team).get(pk=job.pk)
            self.stderr.write(f"{job.done:,} of {job.total:,} {job.doing}")
        return job

    def _finish(self, team: Team, job: Job) -> None:
        if job.status != JobStatus.DONE:
            raise CommandError(job.error or f"The import ended: {job.get_status_display().lower()}.")
        self.stdout.write(json.dumps(job.result, indent=2, ensure_ascii=False))
        taken = sum(job.result.get("taken", {}).values())
        left = sum(job.result.get("left_out", {}).values())
        self.stdout.write(f"{taken:,} taken, {left:,} left out.")
