"""How long a sweep of many memories takes, and how much memory.

    python -m tests.evals.sweep_benchmark --memories 100000

Fills a team of its own in the database of DATABASE_URL, runs `manage.py sweep` on it in a process of its own,
twice: the first changes about a third, the second nothing. Use a database that can be thrown away.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import time
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import django

ROOT = Path(__file__).resolve().parents[2]
SHARES = {  # of what, in thousandths
    "young": 500, "idle": 120, "old episode": 80, "old fact": 60, "semantic": 150, "transient": 20, "unused": 20,
    "failing": 10, "unlikely": 20, "working over": 10, "long archived": 10,
}  # fmt: skip


def fill(team: Any, memories: int) -> None:
    from django.utils import timezone

    from memories.enums import FailureClass, Kind, Rule, Status, Tier
    from tests import factories
    from tests.memories.lives import lives

    chance, now = random.Random(7), timezone.now()

    def ago(days: float) -> Any:
        return now - timedelta(days=days)

    rows = {
        "young": lambda: {"created_at": ago(chance.uniform(0, 28))},
        "idle": lambda: {"created_at": ago(chance.uniform(31, 59))},
        "old episode": lambda: {"created_at": ago(chance.uniform(61, 300))},
        "old fact": lambda: {"created_at": ago(chance.uniform(181, 300)), "kind": Kind.FACT},
        "semantic": lambda: {"created_at": ago(chance.uniform(0, 900)), "tier": Tier.SEMANTIC, "kind": Kind.FACT},
        "transient": lambda: {"created_at": ago(3), "failure_class": FailureClass.TRANSIENT},
        "unused": lambda: {"created_at": ago(3), "kind": Kind.EXPERIENCE, "unused_streak": 6},
        "failing": lambda: {"created_at": ago(3), "kind": Kind.EXPERIENCE, "reuse_count": 9},
        "unlikely": lambda: {"created_at": ago(3), "confidence": 0.2},
        "working over": lambda: {"created_at": ago(1), "tier": Tier.WORKING, "expires_at": ago(0.5)},
        "long archived": lambda: {
            "created_at": ago(300), "status": Status.ARCHIVED, "archived_at": ago(190),
            "archived_by": Rule.EPISODE_IDLE,
        },
    }  # fmt: skip
    kinds = chance.choices(list(SHARES), list(SHARES.values()), k=memories)
    size = 9_000  # the live ones of a scope stay within its capacity
    for place, start in enumerate(range(0, memories, size)):
        agent = factories.agent(team, f"agent-{place}")
        lives(agent, [{"confidence": 0.5, **rows[kind]()} for kind in kinds[start : start + size]])
        print(f"{min(memories, start + size):,} memories written", file=sys.stderr)


def measure(slug: str) -> tuple[float, str]:
    started = time.monotonic()
    command = [sys.executable, str(ROOT / "manage.py"), "sweep", "--team", slug]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return time.monotonic() - started, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    wanted = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hindsight_site.settings")
    django.setup()
    from tests import factories

    slug = f"sweep-{uuid.uuid4().hex[:8]}"
    team = factories.team(slug, owner=f"{slug}@example.test")
    fill(team, wanted.memories)
    for run in ("first", "second"):
        seconds, told = measure(slug)
        print(f"{run} sweep of {wanted.memories:,}: {seconds:.1f} s\n{told}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"most memory of a sweep: {peak:.0f} MB; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
