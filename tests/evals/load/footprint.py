"""What memory the processes of a site hold: PSS, in which a page that n processes share counts an n-th to each."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

EVERY = 5.0  # seconds between two samples


@dataclass(slots=True)
class Watch:
    """Samples of the processes that `processes()` returns: seconds since the start and MB, by process."""

    processes: Callable[[], list[psutil.Process]]
    samples: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    done: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    begun: float = 0.0

    def __enter__(self) -> Watch:
        self.begun = time.monotonic()
        self.thread = threading.Thread(target=self._sample_until_done, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        if self.thread:
            self.thread.join()
        self._sample()

    def summary(self) -> list[dict[str, Any]]:
        """Start, end, most (MB) and slope (MB a minute, least squares over the second half) of each process
        that was there for at least half of the time, and of all together."""
        length = time.monotonic() - self.begun
        lasting = {name: found for name, found in self.samples.items() if found[-1][0] - found[0][0] > length / 2}
        return [{"process": name, **_line(found)} for name, found in sorted(lasting.items())]

    def _sample_until_done(self) -> None:
        while not self.done.wait(0 if not self.samples else EVERY):
            self._sample()

    def _sample(self) -> None:
        at = time.monotonic() - self.begun
        held: dict[str, float] = {}
        for process in self.processes():
            for name in (_title(process), "~ all together"):
                held[name] = held.get(name, 0.0) + pss(process.pid)
        for name, megabytes in held.items():
            self.samples.setdefault(name, []).append((at, megabytes))


def pss(pid: int) -> float:
    """MB; 0 when the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


def _title(process: psutil.Process) -> str:
    """Names like "up 12", "postgres: checkpointer"; the server's connections, which come and go, share one."""
    try:
        command = " ".join(process.cmdline())
    except psutil.Error:
        return "gone"
    if command.startswith("postgres:"):
        words = [word for word in command.split()[1:] if not word.startswith("hindsight-")]
        return "postgres: connections" if "127.0.0.1" in command else f"postgres: {' '.join(words[:2])}"
    found = re.search(r"manage\.py (\w+)", command)
    return f"{found[1]} {process.pid}" if found else "postgres" if "postgres" in command else "gone"


def _line(found: list[tuple[float, float]]) -> dict[str, float]:
    later = found[len(found) // 2 :]
    slope = 0.0
    if len(later) > 2:
        mean_at = sum(at for at, _ in later) / len(later)
        mean = sum(held for _, held in later) / len(later)
        spread = sum((at - mean_at) ** 2 for at, _ in later)
        slope = 60 * sum((at - mean_at) * (held - mean) for at, held in later) / spread if spread else 0.0
    figures = {"start": found[0][1], "end": found[-1][1], "most": max(held for _, held in found), "slope": slope}
    return {name: round(value, 1) for name, value in figures.items()}
