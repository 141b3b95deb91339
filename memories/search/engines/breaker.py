"""After an engine failed, it is left alone for a while, so that not every recall waits for it anew."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

FAILURES = 2  # in a row; one may be a request that was just too long
PAUSE_SECONDS = 5.0  # doubled by each trial that fails
LONGEST_PAUSE_SECONDS = 60.0


class Breaker:
    """Lets calls through until `FAILURES` in a row failed; then one each pause, to try. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._closed_until = 0.0
        self._pause = PAUSE_SECONDS

    def lets_through(self) -> bool:
        """Whether to call now. The one that tries after a pause starts the next: others keep waiting for it."""
        with self._lock:
            if self._failures < FAILURES:
                return True
            now = self._clock()
            if now < self._closed_until:
                return False
            self._closed_until = now + self._pause
            return True

    def succeeded(self) -> None:
        """Note that the engine answered."""
        with self._lock:
            self._failures, self._pause = 0, PAUSE_SECONDS

    def failed(self) -> None:
        """Note that it did not, or too late."""
        with self._lock:
            self._failures += 1
            if self._failures < FAILURES:
                return
            if self._failures > FAILURES:
                self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
            self._closed_until = self._clock() + self._pause
