"""The line between a process and its supervisor, and the rule that no process of ours outlives its parent.

The line is a socket pair. The supervisor says when to begin, the child says when it is ready, and the end of
either is seen by the other, however it came. A process that nobody supervises has no line: `None`.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import sys
import threading
from types import FrameType
from typing import NoReturn

GO, READY = b"go\n", b"ready\n"

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def hold(descriptor: int | None) -> socket.socket | None:
    """Take hold of the line that was handed down. From now on this process gets SIGTERM when its supervisor
    ends, and each process forked from it when its own parent does.

    Call it from the main thread, early. On Linux the kernel watches. Elsewhere a thread does, and forked
    processes are left to whoever supervises the process group. Until something else handles SIGTERM, it
    ends this process with its exit hooks run.
    """
    signal.signal(signal.SIGTERM, _exit)
    if sys.platform == "linux":
        os.register_at_fork(after_in_child=_kernel_watches)
    if descriptor is None:
        return None
    line = socket.socket(fileno=descriptor)
    if sys.platform == "linux":
        _kernel_watches()
        if _is_cut(line):  # before the kernel was asked
            os.kill(os.getpid(), signal.SIGTERM)
    else:
        threading.Thread(target=_watch, args=(line,), name="lifeline", daemon=True).start()
    return line


def wait_for_go(line: socket.socket | None) -> None:
    """Wait until the supervisor says that the database is in order. Exits when the supervisor is gone."""
    if line is not None and not line.recv(len(GO)):
        sys.exit("The supervisor is gone.")


def announce(line: socket.socket | None) -> None:
    """Tell the supervisor that this process does its work now."""
    if line is not None:
        line.sendall(READY)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def _kernel_watches() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _is_cut(line: socket.socket) -> bool:
    """Whether the other end is closed and nothing more is to be read."""
    return bool(select.select([line], [], [], 0)[0]) and not line.recv(1, socket.MSG_PEEK)


def _watch(line: socket.socket) -> None:
    poll = select.poll()
    poll.register(line, 0)  # hang-up is always reported, data is left to `wait_for_go`
    poll.poll()
    os.kill(os.getpid(), signal.SIGTERM)
