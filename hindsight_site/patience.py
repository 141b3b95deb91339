"""How long a caller may take to send a request: a thread reads it, and there are few of those.

What counts is the time spent waiting for bytes, not what the application does between them. Whoever sends steadily
may send for long; whoever stops in the middle, or drips, is cut off.
"""

from __future__ import annotations

import errno
import select
import socket
import time

WAIT_SECONDS = 10.0  # for the whole of a request, beside what its size allows
SLOWEST = 4_096  # bytes a second: each that comes allows so much more


class Patience:
    """A caller's socket as gunicorn's parser reads it. Give each request a new one."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self.left = WAIT_SECONDS

    def recv(self, size: int) -> bytes:
        """Return what has come. Raises ConnectionResetError when the patience is at an end."""
        begun = time.monotonic()
        waiting = select.poll()
        waiting.register(self.line, select.POLLIN)
        if not waiting.poll(max(self.left, 0.0) * 1000):
            self.left = 0.0
            raise ConnectionResetError(errno.ECONNRESET, "the request did not come in time")
        data = self.line.recv(size)
        self.left += len(data) / SLOWEST - (time.monotonic() - begun)
        return data

    def gettimeout(self) -> float | None:
        return self.line.gettimeout()

    def settimeout(self, seconds: float | None) -> None:
        """gunicorn bounds by this how long it drains a body that nobody read."""
        if seconds is not None:
            self.left = min(self.left, seconds)
        self.line.settimeout(seconds)
