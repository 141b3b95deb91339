"""A server for one program: `manage.py up` as its child, or the `up` that runs with the same data folder."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from hindsight_site import running
from hindsight_site.demo_team import kept_token

START_SECONDS = 300.0  # the first start also makes the database
STOP_SECONDS = 20.0  # above the grace of `up`


class CannotStart(Exception):
    """There is no server, and none can be started. One line."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """Where it is, and the token of its demo team ("" when there is none)."""

    url: str
    token: str


@contextmanager
def running_server(data_dir: Path, say: Callable[[str], None]) -> Iterator[LocalServer]:
    """Have a server that uses `data_dir`. One that runs is used and left running; one started here ends with
    this block, and also when this process is killed. Raises `CannotStart`.
    """
    if found := running.find(data_dir):
        say(f"Using the server that runs at {found.url}.")
        yield LocalServer(found.url, kept_token())
        return
    say("Starting a server; the first start takes a while.")
    ours, theirs = socket.socketpair()  # see `lifeline`: when our end closes, `up` stops
    with ours:
        with theirs:
            process = _start(data_dir, theirs.fileno())
        try:
            yield _until_ready(process)
        finally:
            _stop(process)


def _start(data_dir: Path, line: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "up", "--json", "--port", "0"]
    return subprocess.Popen(  # noqa: S603 - our own command, no shell
        [*command, "--data-dir", str(data_dir), "--line", str(line)],
        stdin=subprocess.DEVNULL,  # ours is the client's
        stdout=subprocess.PIPE,
        pass_fds=(line,),
        start_new_session=True,  # a client that kills our process group must not cut it off from its clean end
    )


def _until_ready(process: subprocess.Popen[bytes]) -> LocalServer:
    """Wait for the line that `up` prints when it is ready."""
    assert process.stdout is not None  # noqa: S101 - a pipe, as asked for
    deadline = time.monotonic() + START_SECONDS
    while not select.select([process.stdout], [], [], 0.5)[0]:
        if time.monotonic() > deadline:
            raise CannotStart(f"The server was not ready within {START_SECONDS:.0f} s.")
    line = process.stdout.readline()
    try:
        ready = json.loads(line)
        return LocalServer(ready["url"], ready["token"] or "")
    except (ValueError, KeyError, TypeError):
        raise CannotStart("The server could not be started; the lines above say why.") from None


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop `up` and wait until it is gone; a second signal to us does not cut this short."""
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
