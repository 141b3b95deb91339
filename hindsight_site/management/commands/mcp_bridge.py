"""`manage.py mcp_bridge`: an MCP client that speaks stdio, connected to a server, or to one started here."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hindsight_site import local_server
from hindsight_site.local_server import CannotStart
from hindsight_site.mcp.bridge import bridge, cli, options
from hindsight_site.mcp.bridge.options import BadOptions


class Command(BaseCommand):
    help = (
        "Connect an MCP client that speaks stdio to a Hindsight server. "
        "The same as the command hindsight-mcp, with --local on top."
    )
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's protocol

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = cli.EPILOG
        cli.add_arguments(parser)
        parser.add_argument(
            "--local",
            action="store_true",
            help="start a server and stop it at the end; the token is the demo agent's unless one is given",
        )
        parser.add_argument("--data-dir", help="with --local: where the database, logs and keys are (default: var)")

    def handle(self, *args: Any, **given: Any) -> None:
        if given["local"] and given["url"]:
            raise CommandError("Give --url or --local, not both.")
        cli.stop_on_sigterm()
        out = cli.claim_standard_output()
        try:
            if given["local"]:
                self._local(given, out)
            else:
                cli.carry(cli.read_options(given["url"], given["patience"], given["silence"], cli.environment()), out)
        except KeyboardInterrupt:  # while the server was being started
            bridge.say("Stopped.")
        except (BadOptions, CannotStart) as problem:
            raise CommandError(str(problem)) from problem

    def _local(self, given: dict[str, Any], out: Any) -> None:
        with local_server.running_server(settings.DATA_DIR, bridge.say) as server:
            given_one = cli.environment().keys() & {options.TOKEN, options.TOKEN_FILE}
            environment = cli.environment() if given_one else {options.TOKEN: server.token}
            cli.carry(cli.read_options(server.url, given["patience"], given["silence"], environment), out)
