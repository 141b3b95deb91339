"""The command `hindsight-mcp`, and what it shares with `manage.py mcp_bridge`."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import BinaryIO

from . import bridge, options
from .options import BadOptions, Options

EPILOG = (
    f"The token comes from {options.TOKEN} or from the file that {options.TOKEN_FILE} names. Messages go over "
    "standard input and output, the log to standard error."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of both commands."""
    parser.add_argument("--url", help=f"the server's address (default: {options.URL})")
    parser.add_argument(
        "--patience",
        type=float,
        default=options.PATIENCE,
        metavar="SECONDS",
        help="how long to try again while the server cannot be reached (default: %(default)g)",
    )
    parser.add_argument(
        "--silence",
        type=float,
        default=options.SILENCE,
        metavar="SECONDS",
        help="how long an answer may take to begin (default: %(default)g)",
    )


def environment() -> Mapping[str, str]:
    """The environment that the client has given us."""
    return os.environ


def read_options(url: str | None, patience: float, silence: float, environment: Mapping[str, str]) -> Options:
    """Put the options together. Raises `BadOptions`."""
    where = url or environment.get(options.URL, "").strip()
    if not where:
        raise BadOptions(f"There is no address: give --url https://… or set {options.URL}.")
    if not (0 <= patience < 86_400 and 0 < silence < 86_400):
        raise BadOptions("--patience and --silence are seconds, less than a day.")
    address = options.parse_url(where)
    return replace(Options(address, options.token_source(environment)), patience=patience, silence=silence)


def stop_on_sigterm() -> None:
    """Have SIGTERM end the bridge as Ctrl-C does; a second one is not waited out."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)


def claim_standard_output() -> BinaryIO:
    """Return the real standard output; whatever else prints goes to standard error from now on."""
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out


def carry(found: Options, out: BinaryIO) -> None:
    """Run the bridge between this process's standard input and the server."""
    if found.address.is_exposed:
        bridge.say(f"{found.address.url} is not encrypted: others on the network can read the token.")
    bridge.run(found, io.BufferedReader(io.FileIO(0, closefd=False)), out, bridge.say)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code: 0, or 2 when it cannot be started like this."""
    parser = argparse.ArgumentParser(prog="hindsight-mcp", description=__doc__, epilog=EPILOG)
    parser.description = "Connect an MCP client that speaks stdio to a Hindsight server."
    add_arguments(parser)
    given = parser.parse_args(arguments)
    try:
        found = read_options(given.url, given.patience, given.silence, environment())
    except BadOptions as problem:
        bridge.say(str(problem))
        return 2
    stop_on_sigterm()
    carry(found, claim_standard_output())
    return 0


if __name__ == "__main__":
    sys.exit(main())
