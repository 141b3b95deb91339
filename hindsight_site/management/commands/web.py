"""`manage.py web`: the web server alone."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from hindsight_site import databases, lifeline
from hindsight_site.api.waiting import PLACES
from hindsight_site.web import Serving, serve
from memories.checks import refuse_wrong_settings


class Command(BaseCommand):
    help = "Serve the site with gunicorn until SIGTERM. `manage.py up` starts this and all it needs."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's protocol

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--bind", default="127.0.0.1:8000", help="host:port, or fd://N for an open socket")
        parser.add_argument("--workers", type=int, default=2, help="processes (default: %(default)s)")
        parser.add_argument("--threads", type=int, default=8, help="threads in each (default: %(default)s)")
        parser.add_argument(
            "--grace",
            type=int,
            default=30,
            help="seconds for requests to end at a stop (default: %(default)s)",
        )
        parser.add_argument("--line", type=int, metavar="FD", help="for a supervisor: see hindsight_site.lifeline")

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_wrong_settings()
        line = lifeline.hold(options["line"])
        databases.release_at_exit()

        PLACES.most = max(options["threads"] // 2, 1)

        def begin() -> None:
            lifeline.wait_for_go(line)
            databases.ensure()

        serve(Serving(options["bind"], options["workers"], options["threads"], options["grace"]), begin)
