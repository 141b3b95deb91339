"""Which `up` runs with a data folder, if any. One at a time: told by locks, which end with their holder.

A process id in a file alone could name a stranger after a crash; the file is believed only while the lock
beside it is held.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

_POLL = 0.05  # seconds
_ORPHAN_GRACE = 12.0  # seconds that the children of an `up` that was killed get to end by themselves


@dataclass(frozen=True, slots=True)
class Running:
    """An `up`: its process, its address, and the process groups of its children."""

    pid: int
    url: str
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to be the only `up` of a data folder. `children` is a lock to hand on to every child, so
    that the next `up` can tell when the last of them is gone."""

    data_dir: Path
    own: int
    children: int


class AlreadyRunning(Exception):
    """Another `up` runs with this data folder. Its text is one line with the address."""


def claim(data_dir: Path) -> Claim:
    """Become the only `up` of this folder until this process ends; end what a killed predecessor left.

    Raises AlreadyRunning, and OSError where the folder cannot be written.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    own = _open(data_dir / "up.lock")
    if not _within(1.0, lambda: _lock(own)):
        os.close(own)
        raise AlreadyRunning(_described(_read(data_dir), data_dir))
    left = _read(data_dir)
    _file(data_dir).unlink(missing_ok=True)
    children = _open(data_dir / "up.children.lock")
    if not _within(_ORPHAN_GRACE, lambda: _lock(children)) and left:
        for group in left.groups:
            with suppress(OSError):
                os.killpg(group, signal.SIGKILL)
        _within(_ORPHAN_GRACE, lambda: _lock(children))
    return Claim(data_dir, own, children)


def note(claim: Claim, running: Running) -> None:
    """Write down what runs, for `down` and for the next `up`."""
    draft = _file(claim.data_dir).with_suffix(".new")
    draft.write_text(json.dumps(asdict(running)), encoding="utf-8")
    draft.replace(_file(claim.data_dir))


def find(data_dir: Path) -> Running | None:
    """The `up` that runs with this folder. None when there is none, or when it has only just begun."""
    try:
        lock = os.open(data_dir / "up.lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return None if _lock(lock, fcntl.LOCK_SH) else _read(data_dir)
    finally:
        os.close(lock)


def end(data_dir: Path, *, grace: float) -> Running | None:
    """Stop the `up` of this folder and wait until it is gone: kindly, after `grace` seconds by force.

    Returns what ran, or None when nothing did.
    """
    found = find(data_dir)
    if found is None:
        return None
    for last_word in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(found.pid, last_word)
        if _within(grace, lambda: find(data_dir) is None):
            break
    return found


def _described(running: Running | None, data_dir: Path) -> str:
    if running is None:
        return f"Hindsight is just being started with the data folder {data_dir}."
    return (
        f"Hindsight already runs at {running.url} with the data folder {data_dir} (process {running.pid}). "
        "Stop it with `manage.py down`, or choose another folder with --data-dir."
    )


def _file(data_dir: Path) -> Path:
    return data_dir / "up.json"


def _read(data_dir: Path) -> Running | None:
    try:
        fields = json.loads(_file(data_dir).read_text(encoding="utf-8"))
        return Running(fields["pid"], fields["url"], tuple(fields["groups"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        return True
    return False


def _within(seconds: float, is_done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not (done := is_done()) and time.monotonic() < deadline:
        time.sleep(_POLL)
    return done
