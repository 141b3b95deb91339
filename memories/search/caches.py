"""Numbers about a scope that change slowly, kept in the process for a while."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class TimedCache(Generic[Key, Value]):
    """At most `size` values, each for `seconds`; the least recently used goes first. Thread-safe."""

    def __init__(self, *, size: int, seconds: float) -> None:
        self._size = size
        self._seconds = seconds
        self._held: OrderedDict[Key, tuple[float, Value]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """Return what is held and still fresh, else None."""
        with self._lock:
            found = self._held.get(key)
            if found is None or found[0] < time.monotonic():
                return None
            self._held.move_to_end(key)
            return found[1]

    def put(self, key: Key, value: Value) -> None:
        """Hold `value` from now on."""
        with self._lock:
            self._held[key] = (time.monotonic() + self._seconds, value)
            self._held.move_to_end(key)
            while len(self._held) > self._size:
                self._held.popitem(last=False)

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return what is held, else what `make` returns; two threads may both make it."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found

    def clear(self) -> None:
        """Hold nothing any more."""
        with self._lock:
            self._held.clear()
