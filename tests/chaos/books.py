"""The rows held against what the callers were told."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.chaos.traffic import Ledger
from tests.running_site import Site


@dataclass(frozen=True, slots=True)
class Found:
    """What the demo team has. Texts are listed as often as they are there."""

    memories: list[tuple[str, str]]  # id, content
    traces: list[tuple[str, str]]  # id, task
    open: int  # reflections that are queued or running
    failed: int  # reflections that ended as failed
    without: int  # traces without a reflection
    twice: int  # reflections whose end was told more than once
    untold: int  # reflections that ended, whose end was not told
    waiting: int  # tasks in the queue that no worker has


# Runs in `manage.py shell`, which has the site's settings.
_READ = """
import json
from collections import Counter
from django.utils import timezone
from django_q.models import OrmQ
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.accounts.webhooks.models import WebhookDelivery
from memories.models import Memory
from reflection.models import Reflection, Trace
team = Team.objects.get(name="Demo")
with team_transaction(team):
    runs = dict(Reflection.objects.of(team).values_list("id", "status"))
    told = Counter(p["data"]["reflection"] for p in WebhookDelivery.objects.of(team).filter(
        event="reflection.finished").values_list("payload", flat=True))
    ended = {str(pk) for pk, status in runs.items() if status not in ("queued", "running", "skipped")}
    print(json.dumps({
        "memories": [(str(pk), text) for pk, text in Memory.objects.of(team).values_list("id", "content")],
        "traces": [(str(pk), task) for pk, task in Trace.objects.of(team).values_list("id", "task")],
        "open": sum(status in ("queued", "running") for status in runs.values()),
        "failed": sum(status == "failed" for status in runs.values()),
        "without": Trace.objects.of(team).filter(reflections=None).count(),
        "twice": sum(count > 1 for count in told.values()),
        "untold": len(ended - set(told)),
        "waiting": OrmQ.objects.filter(lock__lte=timezone.now()).count(),
    }))
"""


def read(site: Site) -> Found:
    fields = json.loads(site.run("shell", "--verbosity", "0", "-c", _READ).strip().splitlines()[-1])
    return Found(**fields | {name: [tuple(row) for row in fields[name]] for name in ("memories", "traces")})


def amiss(ledger: Ledger, found: Found, *, may_fail: bool) -> list[str]:
    """What does not agree, in words. `may_fail`: the scenario makes reflections fail for good."""
    wrong = []
    for what, told, rows in (("memory", ledger.memories, found.memories), ("trace", ledger.traces, found.traces)):
        ids, texts = {pk for pk, _ in rows}, Counter(text for _, text in rows)
        lost = [text for text, pk in told.items() if pk not in ids]
        doubled = [text for text in ledger.sent if texts[text] > 1]
        wrong += [f"{len(lost)} × acknowledged {what} lost, as {lost[0]!r}"] if lost else []
        wrong += [f"{len(doubled)} × {what} written twice, as {doubled[0]!r}"] if doubled else []
    for count, words in (
        (found.open, "reflections left undone"),
        (found.without, "traces without a reflection"),
        (found.twice, "reflections done twice"),
        (found.untold, "reflections whose end was not told"),
        (0 if may_fail else found.failed, "reflections failed"),
        (found.waiting, "tasks left in the queue"),
    ):
        wrong += [f"{count} {words}"] if count else []
    wrong += [f"{count} × {answer}" for answer, count in ledger.unexpected.items()]
    return wrong


def contradictions(site: Site) -> str:
    """What `check_invariants` says; empty when it finds nothing."""
    try:
        site.run("check_invariants")
    except RuntimeError as error:
        return str(error)
    return ""


def note(folder: Path, name: str, ledger: Ledger) -> None:
    """Keep the ledger of a scenario that failed, to look into."""
    (folder / f"{name}.ledger.json").write_text(json.dumps(asdict(ledger), default=_plain, indent=1))


def _plain(thing: Any) -> Any:
    return sorted(thing)
