"""Ask for the week's look across every scope's episodes: the schedule does this once a week."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from hindsight_site.accounts.models import Team
from reflection.consolidation.weekly import request_due


class Command(BaseCommand):
    help = "Queue a look across the last week's episodes of every scope, for what repeats in independent traces."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--team", metavar="SLUG", help="only this team")
        parser.add_argument("--again", action="store_true", help="also where this week was looked at already")

    def handle(self, *args: Any, **options: Any) -> None:
        team = find_team(options["team"]) if options["team"] else None
        asked = request_due(timezone.now(), team=team, again=options["again"])
        self.stdout.write(f"{asked} looks asked for; the worker carries them out.")


def find_team(slug: str) -> Team:
    """Return the team of a slug. Raises `CommandError`."""
    team = Team.objects.filter(slug=slug).first()
    if team is None:
        raise CommandError(f"There is no team {slug}.")
    return team
