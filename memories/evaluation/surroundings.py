"""What a measurement was made with: machine, commit, data."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable
from pathlib import Path


def machine() -> str:
    """Return processor, cores and operating system in one line."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"


def commit(repository: Path) -> str:
    """Return the commit that is checked out, or "unknown" outside a repository."""
    git = repository / ".git"
    try:
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        loose = git / name
        if loose.exists():
            return loose.read_text(encoding="utf-8").strip()
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next(line.split()[0] for line in packed if line.endswith(f" {name}"))
    except (OSError, StopIteration):
        return "unknown"


def checksum(paths: Iterable[Path]) -> str:
    """Return the start of the SHA-256 over the files' bytes, in the order given."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
