"""`manage.py demo`: load a few real-looking traces and watch them become lessons."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from hindsight_site import demo, running
from hindsight_site.accounts.models import Agent, Membership, Team, User
from hindsight_site.accounts.tenancy import enter_person, enter_team, team_transaction
from hindsight_site.demo_team import ensure_demo_team
from hindsight_site.schema_state import unapplied_migrations
from memories.contents import cut
from reflection.review import sampling


class Command(BaseCommand):
    help = "Load ten small traces into the demo team and show the loop: trace, lesson, recall, verdict."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--again", action="store_true", help="load the traces once more")

    def handle(self, *args: Any, **options: Any) -> None:
        self.check_database()
        known = ensure_demo_team()
        agent = find_agent(known.email, known.agent)
        if demo.is_loaded(agent.team) and not options["again"]:
            self.stdout.write("The demo's traces are loaded already (--again loads them once more).\n")
        else:
            self.tell(agent)
        self.ask(agent)
        self.open_review(agent.team)
        self.say_what_to_click(known.email)

    def check_database(self) -> None:
        """One line instead of a stack where there is no database yet, or an older one."""
        if unapplied_migrations():
            raise CommandError(
                f"There is no database with the present tables in {settings.DATA_DIR}: run `make up` first, and give "
                "this command the same ARGS."
            )

    def tell(self, agent: Agent) -> None:
        total = len(demo.drafts())
        self.stdout.write(self.style.MIGRATE_HEADING("1  Traces go in, reflections distil them"))
        for number, told in enumerate(demo.tell(agent.team, agent), start=1):
            ended = f"{told.trace.status} → {told.reflection.status}"
            self.stdout.write(f"\n[{number:2}/{total}] {cut(told.trace.task, 70)}  ({ended})")
            if told.reflection.status == "skipped":
                self.stdout.write(f"        skipped: {told.reflection.reason}")
            for result in told.results:
                kind = result.memory.get_kind_display().lower()
                self.stdout.write(f"        {result.effect} {kind}: {cut(result.memory.content, 150)}")

    def ask(self, agent: Agent) -> None:
        self.stdout.write("\n" + self.style.MIGRATE_HEADING("2  The next task asks what is known"))
        for question, answer in demo.ask(agent.team, agent):
            self.stdout.write(f"\n  “{question}”  → {answer.status} in {answer.took_ms:.0f} ms")
            for hit in answer.hits[:2]:
                self.stdout.write(f"        {hit.relevance:.2f}  {cut(hit.snippet, 130)}")
            if not answer.hits:
                self.stdout.write(f"        nothing relevant (best {answer.best_relevance:.2f}), and it says so")

    def open_review(self, team: Team) -> None:
        with team_transaction(team):
            batch = sampling.open_batch(team=team, by=demo.BY, at=timezone.now())
            count = batch.items.count()
        self.stdout.write("\n" + self.style.MIGRATE_HEADING("3  A person judges a sample"))
        self.stdout.write(f"\n  Batch {batch.week} is open with {count} memories.")

    def say_what_to_click(self, email: str) -> None:
        up = running.find(settings.DATA_DIR)
        site = up.url if up else settings.SITE_URL
        self.stdout.write(
            f"""
Now look at it (`make up` runs the site and prints the password of {email}):
  {site}/review/    judge the sample: A approves, D demotes, U takes it back
  {site}/memories/  every memory, with the quotes it rests on
  {site}/traces/    what the agent lived, and which steps became evidence
  {site}/connect/   a token and a ready call for an agent of your own
"""
        )


def find_agent(email: str, slug: str) -> Agent:
    """Return the demo person's agent."""
    with transaction.atomic():
        person = User.objects.get(email=email)
        enter_person(person)
        team = Membership.objects.select_related("team").filter(user=person).earliest("created_at").team
        enter_team(team)
        return Agent.objects.of(team).select_related("team").get(slug=slug)
