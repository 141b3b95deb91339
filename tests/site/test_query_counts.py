"""No page asks the database more than fifteen times, nor more often when there is more to show."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import Agent, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories.enums import Status
from memories.models import Memory, RecallHit
from reflection.models import ReviewBatch
from reflection.review.sampling import open_batch
from reflection.review.verdicts import decide
from tests import factories
from tests.api.routes import MEMORY_PAGES, REFLECTION_PAGES, TEAM_PAGES
from tests.api.test_matrix import ROUTES, slug_of, things  # noqa: F401 - `things` is a fixture

MOST = 15
# Not pages of their own: they send on, or are files.
FILES = {"job_file", "audit_csv", "review-batch-export", "review-metrics-table", "review-metrics-lines"}
NAMES = sorted(
    name
    for name, pages in {**TEAM_PAGES, **MEMORY_PAGES, **REFLECTION_PAGES}.items()
    if any(page.method == "get" for page in pages) and name not in FILES
)
# Without the savepoints that stand in for BEGIN and COMMIT in a test.
FRAME = ("SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN", "COMMIT")


def grow(team: Team, agent: Agent, people: list[User], rows: int) -> None:
    """More of what the pages list: memories, traces, recalls, and a week's batch with verdicts of two people."""
    ReviewBatch.objects.of(team).delete()
    for _ in range(rows):
        factories.memory(agent, f"The key of locker {uuid.uuid4()} is under the mat.")
    factories.memory(agent, f"Held back: {uuid.uuid4()}.", status=Status.QUARANTINED)
    for _ in range(rows // 2):
        factories.trace(agent)
    with team_transaction(team):
        Memory.objects.of(team).update(access_count=3)
        batch = open_batch(team=team, by=SYSTEM)
        for at, item in enumerate(batch.items.order_by("position")[: rows // 2]):
            decision = {"decision": "demote", "reason": "wrong"} if at % 2 else {"decision": "approve"}
            reviewer = people[at % len(people)]
            decide(team=team, by=person(reviewer), reviewer=reviewer, item=item, version=1, **decision)


def address_of(name: str, things: dict[str, Any]) -> str:  # noqa: F811
    pattern = next(found for _, found in ROUTES if found.name == name).pattern
    return reverse(name, kwargs={key: slug_of(name, key, things) for key in pattern.regex.groupindex})


def asked(client: Client, address: str) -> list[str]:
    """The queries of a page that was asked for before."""
    client.get(address)
    with CaptureQueriesContext(connection) as found:
        answer = client.get(address)
    assert answer.status_code in (200, 302) or "no-such-link" in address, (address, answer.status_code)
    return [query["sql"] for query in found.captured_queries if not query["sql"].startswith(FRAME)]


@pytest.mark.django_db
def test_every_page_asks_few_questions_however_much_there_is(team, agent, alice, bob, things, browse) -> None:  # noqa: F811
    client, counted = browse(alice), {}
    for times in (1, 3):
        grow(team, agent, [alice, bob], 8 * times)
        with team_transaction(team):
            batch = ReviewBatch.objects.of(team).get()
            hit = RecallHit.objects.of(team).first()
            assert hit is not None
        client.post(reverse("review-next"))
        with team_transaction(team):
            claimed = batch.items.get(claimed_by=alice)
        here = things | {"week": batch.week, "batch_id": batch.pk, "item_id": claimed.pk}
        counted[times] = {name: asked(client, address_of(name, here)) for name in NAMES}
    many = {name: len(found) for name, found in counted[3].items() if len(found) > MOST}
    assert not many, "\n\n".join(f"{name}: {len(counted[3][name])}\n" + "\n".join(counted[3][name]) for name in many)
    grown = {n: (len(f), len(counted[3][n])) for n, f in counted[1].items() if len(f) < len(counted[3][n])}
    assert not grown, grown
