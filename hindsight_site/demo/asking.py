"""What the demo's agent asks, and what it says afterwards of the answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils import timezone

from hindsight_site.accounts.models import Agent, Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.demo import BY
from memories import actions, recall, scopes
from memories.actions import FeedbackItem
from memories.models import Recall

SESSION = "demo-questions"


@dataclass(frozen=True, slots=True)
class Task:
    """A question, and how the task behind it went: with the best memory taken up, or without."""

    question: str
    adopted: bool
    succeeded: bool


# The same lesson once taken up and once left aside: only then is there a lift to show.
TASKS = (
    Task("Export the May invoices of customer Fabrikam as CSV", adopted=True, succeeded=True),
    Task("Export the June invoices of customer Tailspin as CSV", adopted=False, succeeded=False),
    Task("Which namespace do I deploy the front end to on staging?", adopted=True, succeeded=True),
    Task("Deploy the web front end to staging with helm", adopted=False, succeeded=False),
    Task("Refund order 5120 of 730.00 with refund_order", adopted=True, succeeded=True),
    Task("pytest says that a relation does not exist: what now?", adopted=True, succeeded=True),
    Task("导入反馈表时文件无法解码怎么办？", adopted=True, succeeded=True),
    Task("What is the capital of Australia?", adopted=False, succeeded=True),
    Task("Recommend a restaurant for tonight", adopted=False, succeeded=True),
)


def has_asked(team: Team) -> bool:
    """Whether the demo's questions were asked in this team before."""
    with team_transaction(team):
        return Recall.objects.of(team).filter(session_id=SESSION).exists()


def ask(team: Team, agent: Agent) -> Iterator[tuple[Task, recall.Answer]]:
    """Ask as the agent would, each time with the word that an agent gives when its task is over."""
    for task in TASKS:
        with team_transaction(team):
            answer = recall.recall(
                team=team,
                agent=agent,
                scopes=scopes.readable(team, agent),
                question=recall.Question(query=task.question, session_id=SESSION, at=timezone.now()),
            )
            _tell_the_end(team, task, answer)
        yield task, answer


def _tell_the_end(team: Team, task: Task, answer: recall.Answer) -> None:
    """Only the best hit is taken up: what came with it is told as left aside."""
    items = [
        FeedbackItem(str(hit.memory), adopted=task.adopted and place == 0, success=task.succeeded)
        for place, hit in enumerate(answer.hits)
    ]
    if items:
        asked = Recall.objects.of(team).get(pk=answer.recall_id)
        actions.give_feedback(team=team, by=BY, recall=asked, items=items)
