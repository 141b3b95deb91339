"""`manage.py worker`: the processes that work off the queue, and the schedule."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from hindsight_site import databases, lifeline, sharing
from memories.checks import refuse_wrong_settings


class Command(BaseCommand):
    help = (
        "Work off the queue and the schedule until SIGTERM (to this process alone); running tasks are "
        "finished first. Q_CLUSTER_NAME names another queue than the default one."
    )
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's protocol

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--line", type=int, metavar="FD", help="for a supervisor: see hindsight_site.lifeline")

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_wrong_settings()
        line = lifeline.hold(options["line"])
        databases.release_at_exit()
        # Loaded before the fork, so that the pool's processes share it all.
        import reflection.tasks  # noqa: F401
        from hindsight_site import worker
        from memories.embeddings import warm_up

        if settings.OTEL_EXPORTER_OTLP_ENDPOINT:
            from hindsight_site.telemetry import tracing

            tracing.trace_tasks()
        warm_up()
        lifeline.wait_for_go(line)
        databases.ensure()
        sharing.share()
        worker.run(lambda: lifeline.announce(line))
