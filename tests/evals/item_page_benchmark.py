"""How long the server takes for one item of the review when the team has many memories.

    python -m tests.evals.item_page_benchmark --memories 100000 --requests 200

Fills a team of its own in the database of DATABASE_URL with memories of random directions, twenty of them in a
batch with evidence and recalls, and asks for the items' pages in turn: from the request to the rendered page, the
session, the queries and the templates with it. Use a database that can be thrown away; `--team SLUG` measures one
that an earlier run filled.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import uuid
from typing import Any

import django

SCOPE_SIZE = 10_000  # what a scope holds at most, by the rules of life


def fill(team: Any, memories: int) -> None:
    """Write the memories with their search rows, spread over agents' private scopes."""
    import numpy as np

    from memories.embeddings import get_embedder
    from memories.enums import Kind, Tier
    from tests import factories
    from tests.memories.lives import lives

    embedder = get_embedder()
    chance = np.random.default_rng(7)
    for place, start in enumerate(range(0, memories, SCOPE_SIZE)):
        agent = factories.agent(team, f"agent-{place}")
        count = min(SCOPE_SIZE, memories - start)
        rows = ({"kind": Kind.FACT, "tier": Tier.SEMANTIC, "access_count": at % 7} for at in range(count))
        directions = chance.standard_normal((count, embedder.dimensions)).astype(np.float32)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lives(agent, rows, embeddings=directions)
        print(f"{start + count:,} memories written", file=sys.stderr)


def prepare(slug: str, memories: int) -> None:
    """A team with memories, quotes and recalls, and the batch of the week."""
    from hindsight_site.accounts.audit import SYSTEM
    from hindsight_site.accounts.tenancy import team_transaction
    from memories.models import Evidence, Recall, RecallHit
    from reflection.models import Step
    from reflection.review.sampling import open_batch
    from tests import factories

    team = factories.team(slug, owner=f"{slug}@example.test")
    fill(team, memories)
    trace, _ = factories.trace(factories.agent(team, "witness"))
    with team_transaction(team):
        batch = open_batch(team=team, by=SYSTEM)
        step = Step.objects.of(team).filter(trace=trace).exclude(content="").order_by("sequence")[0]
        for item in batch.items.select_related("memory__agent"):
            Evidence.objects.create(
                team=team, memory=item.memory, trace_id=trace.pk, step_id=step.pk, step_sequence=step.sequence,
                role=step.role, start=0, end=10, quote=step.text[:10],
            )  # fmt: skip
            for _ in range(5):
                recall = Recall.objects.create(team=team, agent=item.memory.agent, status="matched", query="which?")
                RecallHit.objects.create(
                    team=team, recall=recall, memory=item.memory, revision=1, rank=1, score=1, relevance=1
                )


def measure(slug: str, requests: int) -> tuple[list[float], float]:
    """Milliseconds of each request, after one for every page that is not counted; and what this process worked.

    The second is the mean processor time of a request in milliseconds: it hardly moves when the machine is busy.
    """
    from django.db import connection
    from django.test import Client
    from django.urls import reverse

    from hindsight_site.accounts.models import Membership, Team
    from hindsight_site.accounts.tenancy import team_transaction
    from reflection.models import ReviewItem

    team = Team.objects.get(slug=slug)
    with team_transaction(team):
        owner = Membership.objects.of(team).select_related("user").filter(role="owner")[0].user
        items = list(ReviewItem.objects.of(team).order_by("position").values_list("pk", flat=True))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    client = Client()
    client.force_login(owner)
    taken = []
    begun = time.process_time()
    for at in range(len(items) + requests):
        address = reverse("review-item", args=[items[at % len(items)]])
        started = time.perf_counter()
        answer = client.get(address)
        if at >= len(items):
            taken.append((time.perf_counter() - started) * 1000)
        assert answer.status_code == 200, answer.status_code
    return taken, (time.process_time() - begun) * 1000 / (len(items) + requests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--team", default="", help="the slug that an earlier run printed")
    wanted = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hindsight_site.settings")
    django.setup()
    from django.conf import settings

    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "testserver"]
    slug = wanted.team or f"item-page-{uuid.uuid4().hex[:8]}"
    if not wanted.team:
        prepare(slug, wanted.memories)
    taken, worked = measure(slug, wanted.requests)
    p50, p95 = statistics.median(taken), statistics.quantiles(taken, n=20)[-1]
    load = os.getloadavg()[0]
    print(f"team {slug}: item page p50 {p50:.1f} ms, p95 {p95:.1f} ms of {len(taken)}; load {load:.1f}")
    print(f"processor time of the web process {worked:.1f} ms a page; the database's comes on top")


if __name__ == "__main__":
    main()
