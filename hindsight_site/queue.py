"""The only importer of the queue's `async_task`. Pass ids only: payloads are stored readable."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.conf import settings
from django.db.models import Min
from django.utils import timezone
from django_q.models import OrmQ
from django_q.tasks import async_task


def oldest_waiting() -> datetime | None:
    """When the oldest task came in that no worker has taken yet; None when none waits."""
    waiting = OrmQ.objects.filter(key=settings.Q_CLUSTER["name"], lock__lte=timezone.now())
    return waiting.aggregate(oldest=Min("lock"))["oldest"]


def enqueue(task: str, *ids: uuid.UUID) -> None:
    """Wake a worker to run the function at the dotted path `task` with `ids`.

    The queue's row is written in the caller's transaction and rolls back with it. A wake-up may be
    lost or come twice: the job's own row decides what is done.
    """
    async_task(task, *(str(ident) for ident in ids))
