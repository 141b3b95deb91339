"""The folder in which the processes of one web server count together."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "hindsight-metrics-"
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it, which nobody else may enter


def make_folder() -> str:
    """Make it, in memory where the system has such a place; remove those of servers that were killed.

    It goes when this process ends, not with its forks. A lock in it tells the living: they all hold it.
    """
    in_memory = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)
    parent = _MEMORY if in_memory else Path(tempfile.gettempdir())
    _remove_left_behind(parent)
    draft = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=parent))
    lock = os.open(draft / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    folder = draft.rename(parent / draft.name.removeprefix("."))  # known by its name, it is locked
    atexit.register(_remove, folder, os.getpid())
    return str(folder)


def _remove_left_behind(parent: Path) -> None:
    """Remove the folders of this user whose lock nobody holds."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another user's, or somebody else was faster
            lock = os.open(folder / "lock", os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(lock)


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
