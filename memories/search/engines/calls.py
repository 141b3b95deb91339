"""Calling an engine: in a thread that is waited for no longer than there is time, and not while it is down."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from functools import cache
from typing import TypeVar

from .base import EngineError
from .breaker import Breaker

THREADS = 32  # searches at once; those of an engine that hangs end with its driver's time-out

Result = TypeVar("Result")

breaker = Breaker()  # of this process: readers and writers tell each other


def guarded(call: Callable[[], Result]) -> Result:
    """Return what `call` does, or raise `EngineError`, at once while the engine is left alone."""
    _refuse_while_down()
    try:
        result = call()
    except EngineError:
        breaker.failed()
        raise
    breaker.succeeded()
    return result


def in_time(call: Callable[[], Result], seconds: float) -> Result:
    """Like `guarded`, and waited for no longer than `seconds`."""
    _refuse_while_down()
    future: Future[Result] = _threads(os.getpid()).submit(call)
    try:
        result = future.result(timeout=seconds)
    except Late:
        future.cancel()
        breaker.failed()
        raise EngineError(f"The vector index did not answer within {seconds * 1000:.0f} ms.") from None
    except EngineError:
        breaker.failed()
        raise
    breaker.succeeded()
    return result


def _refuse_while_down() -> None:
    if not breaker.lets_through():
        raise EngineError("The vector index failed a moment ago and is left alone for now.")


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Of this process: a fork takes no threads along."""
    return ThreadPoolExecutor(THREADS, thread_name_prefix=f"vector-index-{process}")
