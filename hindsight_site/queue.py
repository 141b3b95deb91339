"""The only importer of the queue's `async_task`. Pass ids only: payloads are stored readable."""

from __future__ import annotations

import uuid

from django_q.tasks import async_task


def enqueue(task: str, *ids: uuid.UUID) -> None:
    """Wake a worker to run the function at the dotted path `task` with `ids`.

    The queue's row is written in the caller's transaction and rolls back with it. A wake-up may be
    lost or come twice: the job's own row decides what is done.
    """
    async_task(task, *(str(ident) for ident in ids))
