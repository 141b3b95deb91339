"""The process that works off the queue: django-q2's pool of processes, watched over from here.

This process is itself the pool's guard (django-q2's Sentinel), so that there is one process to signal, to
wait for and to kill, and none that is left behind:

- SIGTERM or SIGINT, sent to this process alone: no new tasks, running ones are finished, then it ends.
- Killed: the kernel ends the pool with it (`lifeline.hold`, called by the command).
- A pool process killed: it may have held the lock of the queue it was reading from, which then nobody can
  read any more. The others finish what they do, and the pool is built anew with new queues.
- The database away: the processes that notice end and are started again until it is back.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import select
import signal
import time
import uuid
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from types import FrameType

from django.db import Error, connections
from django_q import cluster
from django_q.brokers import Broker
from django_q.cluster import Sentinel
from django_q.conf import Conf
from django_q.scheduler import scheduler

from hindsight_site import schedules

logger = logging.getLogger(__name__)

_IDLE = -1.0  # django-q2's timer of a pool process that waits for a task
_POLL = 0.1  # seconds


class PoolBroken(Exception):
    """A pool process was killed from outside."""


class Guard(Sentinel):
    """django-q2's guard over its pool, which gives up when a pool process was killed."""

    def reincarnate(self, process: BaseProcess) -> None:
        if process.exitcode is not None and process.exitcode < 0:
            raise PoolBroken(f"a queue process was ended by signal {-process.exitcode}")
        super().reincarnate(process)


def _schedule(broker: Broker) -> None:
    """Queue what is due; plan anew what went astray. A clock that was ahead leaves all of it planned far away."""
    scheduler(broker=broker)
    try:
        schedules.sync()
    except Error:
        logger.warning("the schedule could not be looked over: the database does not answer")


cluster.scheduler = _schedule  # the guard calls it by this name, twice a minute


class StopFlag:
    """Set by a signal handler, waited for by the guard.

    The event of `multiprocessing` takes a lock to be set: a handler that interrupts a wait would hang.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        os.write(self._write, b"!")

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, seconds: float) -> bool:
        if not self._is_set:
            select.select([self._read], [], [], seconds)
        return self._is_set


class StartFlag:
    """Set by the guard when the pool stands; tells whoever wants to know, the first time only."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._is_set = False

    def set(self) -> None:
        if not self._is_set:
            self._announce()
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set


def run(announce: Callable[[], None]) -> None:
    """Work until SIGTERM or SIGINT. `announce` is called once, when the first task can be taken."""
    stop, started = StopFlag(), StartFlag(announce)
    os.register_at_fork(after_in_child=_plain_signals)

    def ask(number: int, frame: FrameType | None) -> None:
        stop.set()

    while not stop.is_set():
        guard = Guard(stop, started, uuid.uuid4(), start=False)
        signal.signal(signal.SIGTERM, ask)  # after the guard was made, which sets its own
        signal.signal(signal.SIGINT, ask)
        try:
            guard.start()
        except PoolBroken as error:
            logger.critical("%s: building the pool anew", error)
            _take_down(guard, stop)
            connections.close_all()


def _plain_signals() -> None:
    """In the pool: SIGTERM ends at once, Ctrl-C is the guard's business."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _take_down(guard: Guard, stop: StopFlag) -> None:
    """End the pool's processes, the working ones when they have finished their task or are out of time."""
    guard.pusher.terminate()
    deadline = time.monotonic() + Conf.TIMEOUT
    while not stop.is_set() and any(map(_works, guard.pool)) and time.monotonic() < deadline:
        time.sleep(_POLL)
    time.sleep(_POLL)  # for the last result to reach the monitor
    for process in multiprocessing.active_children():
        process.kill()
        process.join()


def _works(process: BaseProcess) -> bool:
    """Whether a pool process is at a task. Reads its timer without the lock, which a dead one may hold."""
    return process.is_alive() and process.timer.get_obj().value not in (_IDLE, 0.0)  # type: ignore[attr-defined]
