"""`manage.py up` for real: its own database, web server and worker, killed in every way and coming back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

import psutil
import pytest

from tests.running_site import Site, is_alive, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One data folder for all tests here, so that the database is created once."""
    site = Site(tmp_path_factory.mktemp("up") / "data")
    yield site
    site.stop()


@pytest.fixture(autouse=True)
def running(site: Site) -> None:
    site.start()


def reflects(site: Site) -> bool:
    """Whether a trace that is sent now is worked off by database, web server, queue and worker together."""
    step = {
        "role": "user",
        "kind": "message",
        "content": "Remember: the staging server restarts at 04:00 UTC.",
    }
    trace = {"task": "Note a fact.", "steps": [step], "outcome": "succeeded", "remember": True}
    status, trace = site.api("POST", "traces", trace)
    assert status == 201, trace
    reflection = until(lambda: _ended(site, trace["reflection"]["id"]))
    return reflection["status"] in {"stored", "nothing_new", "rejected"}


def _ended(site: Site, reflection: str) -> Any:
    _, answer = site.api("GET", f"reflections/{reflection}?wait=5")
    return answer if answer["status"] not in {"queued", "running"} else None


def test_one_line_says_how_to_use_it_all(site: Site) -> None:
    assert set(site.access) == {"url", "email", "password", "agent", "token", "pid"}
    assert site.process
    assert site.access["pid"] == site.process.pid
    assert site.request("GET", "/readyz")[2]["status"] == "ready"
    status, me = site.api("GET", "me")
    assert status == 200
    assert site.access["agent"] in json.dumps(me)
    assert reflects(site)


def test_the_person_can_sign_in(site: Site) -> None:
    _, headers, _ = site.request("GET", "/login/")
    csrf = SimpleCookie(headers["Set-Cookie"])["csrftoken"].value
    form = {
        "username": site.access["email"],
        "password": site.access["password"],
        "csrfmiddlewaretoken": csrf,
    }
    status, headers, page = site.request(
        "POST",
        "/login/",
        urlencode(form),
        **{"Cookie": f"csrftoken={csrf}", "Content-Type": "application/x-www-form-urlencoded"},
    )
    assert status == 302, page
    assert "sessionid" in headers["Set-Cookie"]


@pytest.mark.parametrize("command", ["web", "worker"])
def test_a_killed_child_comes_back(site: Site, command: str) -> None:
    killed = site.child(command)
    assert killed
    killed.kill()
    until(lambda: (now := site.child(command)) and now.pid != killed.pid)
    until(lambda: site.request("GET", "/healthz")[0] == 200)
    assert reflects(site)


def test_a_killed_pool_process_does_not_leave_the_queue_stuck(site: Site) -> None:
    """It may have held the lock of the queue that all of them read."""
    worker = site.child("worker")
    assert worker
    for process in worker.children():
        process.kill()
    assert reflects(site)
    assert site.child("worker") == worker


def test_a_killed_database_comes_back(site: Site) -> None:
    killed = site.postmaster()
    psutil.Process(killed).kill()
    until(lambda: site.postmaster() != killed and site.request("GET", "/readyz")[0] == 200)
    assert reflects(site)


def test_a_second_one_names_the_first(site: Site) -> None:
    second = site.manage("up", "--port", "0", "--json")
    output, errors = second.communicate(timeout=60)
    assert (second.returncode, output) == (1, "")
    assert f"already runs at {site.access['url']} " in errors
    assert len(errors.splitlines()) == 1


def test_sigterm_leaves_nothing_and_the_next_start_shows_the_same(site: Site) -> None:
    before = dict(site.access)
    processes = site.processes()
    assert site.process
    site.process.terminate()
    output, _ = site.end()
    assert (site.process.returncode, output) == (0, "")
    assert until(lambda: not any(map(is_alive, processes)), timeout=5)
    site.start()
    assert site.seconds_to_start < 30  # 3 seconds where nothing else runs
    kept = ("email", "password", "agent", "token")
    assert [site.access[name] for name in kept] == [before[name] for name in kept]


def test_when_it_is_killed_its_children_end_and_it_can_be_started_again(site: Site) -> None:
    processes = site.processes()
    assert site.process
    site.process.kill()
    site.end()
    site.start()
    assert not any(map(is_alive, processes[:1]))
    children = [process for process in processes if "manage.py" in " ".join(_command(process))]
    assert not any(map(is_alive, children))
    assert reflects(site)
    down = site.manage("down")
    assert down.communicate(timeout=60)[0] == f"Stopped {site.access['url']}.\n"
    assert down.returncode == 0
    assert site.end()[0] == ""
    assert not (site.data_dir / "database" / "postmaster.pid").exists()


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []
