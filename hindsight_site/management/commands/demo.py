"""`manage.py demo`: fill a team with a small true history, and say where to look at it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from hindsight_site import demo, running
from hindsight_site.accounts.models import Agent, Membership, Team, User
from hindsight_site.accounts.tenancy import enter_person, enter_team
from hindsight_site.demo import asking, judging, knowing
from hindsight_site.demo_team import ensure_demo_team
from hindsight_site.schema_state import unapplied_migrations
from memories.contents import cut

SECOND = "/review/conflicts/"
GUIDE = (
    ("/", "the first page: what is known, how often a recall matched, what needs a person"),
    ("/review/", "judge the rest of the sample: A approves, D demotes, U takes it back"),
    (SECOND, "Robin and Kim differ on a memory: settle it"),
    ("/memories/", "every memory, with the quotes it rests on; some with a use that is measured"),
    ("/conflicts/", "two facts about the port of the staging database that cannot both hold"),
    ("/quarantine/", "what a planted instruction in a tool's answer came to"),
    ("/recalls/", "who was told what, what became of it, and two questions that rightly found nothing"),
    ("/traces/", "what the agent lived, and which steps became evidence"),
    ("/connect/", "a token and a ready call for an agent of your own"),
)


class Command(BaseCommand):
    help = "Load eleven small traces into the demo team and show the loop: trace, lesson, recall, feedback, verdict."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--again", action="store_true", help="load the traces and ask the questions once more")

    def handle(self, *args: Any, **options: Any) -> None:
        self.check_database()
        known = ensure_demo_team()
        agent = find_agent(known.email, known.agent)
        again = options["again"]
        if demo.is_loaded(agent.team) and not again:
            self.stdout.write("The demo's traces are loaded already (--again loads them once more).\n")
        else:
            self.tell(agent)
        knowing.share(agent.team, agent)
        if again or not asking.has_asked(agent.team):
            self.ask(agent)
        judged = self.open_review(agent.team)
        self.say_what_to_click(known.email, judged)

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
        self.stdout.write("\n" + self.style.MIGRATE_HEADING("2  The next tasks ask what is known, and say how it went"))
        for task, answer in asking.ask(agent.team, agent):
            self.stdout.write(f"\n  “{task.question}”  → {answer.status} in {answer.took_ms:.0f} ms")
            for hit in answer.hits[:2]:
                self.stdout.write(f"        {hit.relevance:.2f}  {cut(hit.snippet, 130)}")
            if not answer.hits:
                self.stdout.write(f"        nothing relevant (best {answer.best_relevance:.2f}), and it says so")
            else:
                used = "the first one was used" if task.adopted else "none was used"
                self.stdout.write(f"        {used}, and the task {'succeeded' if task.succeeded else 'failed'}")

    def open_review(self, team: Team) -> judging.Judged:
        judged = judging.judge(team)
        self.stdout.write("\n" + self.style.MIGRATE_HEADING("3  People judge a sample"))
        self.stdout.write(f"\n  Batch {judged.batch.week} is open with {judged.items} memories.")
        self.stdout.write(
            f"  Robin and Kim, colleagues in name only, decided {judged.decided}, differ on {judged.differing},"
            f" and {judged.half} awaits a second opinion.\n  Rates stand under /review/metrics/ once the week is over."
        )
        return judged

    def say_what_to_click(self, email: str, judged: judging.Judged) -> None:
        up = running.find(settings.DATA_DIR)
        site = up.url if up else settings.SITE_URL
        guide = [(path, words) for path, words in GUIDE if judged.differing or path != SECOND]
        width = max(len(path) for path, _ in guide)
        self.stdout.write(f"\nNow look at it (`make up` runs the site and prints the password of {email}):\n")
        for path, words in guide:
            self.stdout.write(f"  {site}{path:<{width}}  {words}\n")


def find_agent(email: str, slug: str) -> Agent:
    """Return the demo person's agent."""
    with transaction.atomic():
        person = User.objects.get(email=email)
        enter_person(person)
        team = Membership.objects.select_related("team").filter(user=person).earliest("created_at").team
        enter_team(team)
        return Agent.objects.of(team).select_related("team").get(slug=slug)
