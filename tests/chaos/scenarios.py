"""The harm that is done, each a function that returns when it is over and the site is left to itself."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.chaos import places
from tests.chaos.places import Place
from tests.chaos.traffic import Traffic
from tests.fakes import Fault
from tests.running_site import is_alive, until

Act = Callable[[Place, Traffic], None]
Where = Callable[[Path], AbstractContextManager[Place]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """`within`: seconds in which the site has to work again, all of it. `may_fail`: reflections may end as failed."""

    name: str
    says: str
    act: Act
    where: Where = places.plain
    within: float = 180.0
    may_fail: bool = False


# --- Processes ---------------------------------------------------------------------------------------


def kill_web_process(place: Place, traffic: Traffic) -> None:
    _child(place, "web").children()[0].kill()


def kill_web(place: Place, traffic: Traffic) -> None:
    _child(place, "web").kill()


def kill_queue_process(place: Place, traffic: Traffic) -> None:
    for process in _child(place, "worker").children():
        process.kill()


def kill_sentinel(place: Place, traffic: Traffic) -> None:
    _child(place, "worker").kill()


def kill_database(place: Place, traffic: Traffic) -> None:
    psutil.Process(place.site.postmaster()).kill()


def kill_database_connection(place: Place, traffic: Traffic) -> None:
    """One server process dies: PostgreSQL ends all others and recovers."""
    for process in psutil.Process(place.site.postmaster()).children():
        with suppress(psutil.Error):
            if "127.0.0.1" in " ".join(process.cmdline()):
                process.kill()
                return


def freeze_database(place: Place, traffic: Traffic) -> None:
    """It neither answers nor hangs up."""
    with _stopped([psutil.Process(place.site.postmaster()), *_server(place)]):
        time.sleep(place.outage)


def stop_database(place: Place, traffic: Traffic) -> None:
    from hindsight_site import embedded_db

    embedded_db.stop(place.database, force=True)
    time.sleep(place.outage)
    embedded_db.start(place.database)


def terminate_worker(place: Place, traffic: Traffic) -> None:
    """SIGTERM to the worker while a model is thinking: it finishes, and is started again."""
    assert place.model
    place.model.hang_seconds = 3.0
    place.model.script(*[Fault.HANG] * 4)
    _wait_for_model(place, traffic)
    worker = _child(place, "worker")
    worker.terminate()
    until(lambda: not is_alive(worker), timeout=30)


def terminate_site(place: Place, traffic: Traffic) -> None:
    """SIGTERM to `up` while a model is thinking for longer than `up` waits, and another start."""
    assert place.model
    place.model.hang_seconds = 30.0
    place.model.script(*[Fault.HANG] * 2)
    _wait_for_model(place, traffic)
    url = place.site.access["url"]
    assert place.site.process
    place.site.process.terminate()
    place.site.end()
    place.model.hang_seconds = 1.0
    place.site.start(port=int(url.rpartition(":")[2]))


# --- Disk and clock ----------------------------------------------------------------------------------


def fill_disk(place: Place, traffic: Traffic) -> None:
    """Not a byte is left, for a while; what is freed by others is taken again."""
    ballast = place.site.data_dir.parent / "ballast"
    over_at = time.monotonic() + place.outage
    with ballast.open("ab", buffering=0) as file:
        while time.monotonic() < over_at:
            try:
                file.write(bytes(1 << 20))
            except OSError:
                time.sleep(0.1)
    ballast.unlink()


def clock_forward(place: Place, traffic: Traffic) -> None:
    """Two hours in a moment, and back: leases seem to have run out, tokens to have expired."""
    _shift(place, "7200", 15.0)


def clock_back(place: Place, traffic: Traffic) -> None:
    """An hour back, and forward again: what is due now seems to be due later."""
    _shift(place, "-3600", 15.0)


# --- The model ---------------------------------------------------------------------------------------


def model_slow(place: Place, traffic: Traffic) -> None:
    assert place.model
    place.model.hang_seconds = 2.0
    _all_requests(place, Fault.HANG, 15.0)


def model_hanging(place: Place, traffic: Traffic) -> None:
    """It takes the question, and says nothing for longer than anybody waits."""
    assert place.model
    place.model.hang_seconds = 20.0
    _all_requests(place, Fault.HANG, 15.0)


def model_erring(place: Place, traffic: Traffic) -> None:
    _all_requests(place, Fault.SERVER_ERROR, 15.0)


def model_refusing(place: Place, traffic: Traffic) -> None:
    """Nobody listens at its address."""
    assert place.model
    with place.model.away():
        time.sleep(15.0)


# --- The queue ---------------------------------------------------------------------------------------


def queue_many(place: Place, traffic: Traffic) -> None:
    """No worker for as long as it takes to queue thousands of jobs."""
    with _stopped([_child(place, "worker"), *_child(place, "worker").children(recursive=True)]):
        _record(traffic, place.jobs)


def deliver_twice(place: Place, traffic: Traffic) -> None:
    """Each wake-up in the queue three times, while the work has not begun."""
    with _stopped([_child(place, "worker"), *_child(place, "worker").children(recursive=True)]):
        _record(traffic, 60)
        place.site.run("shell", "--verbosity", "0", "-c", _TWICE)


_TWICE = """
from django.db import connection
with connection.cursor() as cursor:
    for _ in range(2):
        cursor.execute("INSERT INTO django_q_ormq (key, payload, lock) SELECT DISTINCT ON (payload) key, payload, lock"
                       " FROM django_q_ormq")
"""

PROCESSES = (
    Scenario("kill-web-process", "kill -9 of one of the two web processes", kill_web_process),
    Scenario("kill-web", "kill -9 of the web server's parent process", kill_web),
    Scenario("kill-queue-processes", "kill -9 of all processes of the queue's pool", kill_queue_process),
    Scenario("kill-sentinel", "kill -9 of the queue's guard", kill_sentinel),
    Scenario("kill-database", "kill -9 of PostgreSQL's parent process", kill_database),
    Scenario("kill-database-connection", "kill -9 of one PostgreSQL connection", kill_database_connection),
    Scenario("duplicate-deliveries", "every wake-up in the queue three times", deliver_twice),
    Scenario("freeze-database", "PostgreSQL frozen (SIGSTOP) for 30 s", freeze_database),
    Scenario("queue-many", "10,000 jobs queued while no worker runs", queue_many, within=3600.0),
)
OTHERS = (
    Scenario("stop-database", "a PostgreSQL of one's own stopped for 30 s", stop_database, places.with_database_apart),
    Scenario("full-disk", "no byte left on the data folder's disk for 30 s", fill_disk, places.on_small_disk),
    Scenario("clock-back", "an hour back, and forward again", clock_back, places.under_false_clock),
    Scenario("clock-forward", "two hours forward, and back", clock_forward, places.under_false_clock),
    Scenario("model-slow", "the model takes two seconds", model_slow, places.with_model),
    Scenario("model-hanging", "the model takes longer than the time-out", model_hanging, places.with_model, 400.0),
    Scenario("model-erring", "the model answers 500", model_erring, places.with_model, 400.0),
    Scenario("model-refusing", "nobody listens at the model's address", model_refusing, places.with_model, 400.0),
    Scenario("terminate-worker", "SIGTERM to the worker during a reflection", terminate_worker, places.with_model),
    Scenario("terminate-site", "SIGTERM to `up` during a reflection, then a start", terminate_site, places.with_model),
)
ALL = (*PROCESSES, *OTHERS)


# --- How ---------------------------------------------------------------------------------------------


def _child(place: Place, command: str) -> psutil.Process:
    return until(lambda: place.site.child(command))


def _server(place: Place) -> list[psutil.Process]:
    return psutil.Process(place.site.postmaster()).children()


@contextmanager
def _stopped(processes: list[psutil.Process]):
    """Keep processes from running for a while."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)


def _shift(place: Place, by: str, seconds: float) -> None:
    place.clock.write_text(by)
    time.sleep(seconds)
    place.clock.write_text("0")


def _all_requests(place: Place, fault: Fault, seconds: float) -> None:
    """Have the model do that to everything it is asked for so long."""
    assert place.model
    place.model.always = fault
    time.sleep(seconds)
    place.model.always = None
    place.model.hang_seconds = 1.0


def _wait_for_model(place: Place, traffic: Traffic) -> None:
    """Wait until a reflection is waiting for the model."""
    assert place.model
    asked = len(place.model.requests)
    traffic.record()
    until(lambda: len(place.model.requests) > asked if place.model else False)


def _record(traffic: Traffic, count: int, callers: int = 8) -> None:
    shares = [count // callers + (place < count % callers) for place in range(callers)]

    def record(share: int) -> None:
        for _ in range(share):
            traffic.record()

    threads = [threading.Thread(target=record, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
