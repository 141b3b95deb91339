"""`manage.py up` for real: its own database, web server and worker, killed in every way and coming back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

psutil = pytest.importorskip("psutil", reason="psutil, which tells what processes there are, is not installed")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT = 120.0  # seconds, on a machine that is busy with other things
RECOVERY_TIMEOUT = 60.0


@dataclass
class Site:
    """A data folder, and the `up` that runs with it, if any."""

    data_dir: Path
    process: subprocess.Popen[str] | None = None
    access: dict[str, Any] = field(default_factory=dict)
    seconds_to_start: float = 0.0

    def manage(self, *arguments: str) -> subprocess.Popen[str]:
        """Run a command on the data folder, without the settings of whoever runs the tests."""
        ours = ("DATABASE_URL", "SITE_URL", "ALLOWED_HOSTS", "SECRET_KEY", "Q_CLUSTER_NAME")
        environment = {name: value for name, value in os.environ.items() if name not in ours}
        return subprocess.Popen(
            [sys.executable, "manage.py", *arguments, "--data-dir", str(self.data_dir)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start(self) -> None:
        """Have `up` run, and know how to reach it."""
        if self.process and self.process.poll() is None:
            return
        begun = time.monotonic()
        self.process = self.manage("up", "--port", "0", "--json")
        line = self.process.stdout.readline() if self.process.stdout else ""
        self.seconds_to_start = time.monotonic() - begun
        assert line, self.process.communicate()[1]
        self.access = json.loads(line)

    def end(self) -> tuple[str, str]:
        """Wait until `up` ends, and return what it wrote after the first line."""
        assert self.process
        return self.process.communicate(timeout=60)

    def child(self, command: str) -> psutil.Process | None:
        """The process of `up` that runs `manage.py <command>`."""
        assert self.process
        for child in psutil.Process(self.process.pid).children():
            if is_alive(child) and command in child.cmdline():
                return child
        return None

    def postmaster(self) -> int:
        return int((self.data_dir / "database" / "postmaster.pid").read_text().splitlines()[0])

    def processes(self) -> list[psutil.Process]:
        """All that runs: `up`, its children and theirs, and the database server."""
        assert self.process
        parents = [psutil.Process(self.process.pid), psutil.Process(self.postmaster())]
        return [process for parent in parents for process in (parent, *parent.children(recursive=True))]

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict, Any]:
        """Ask the site something. Returns status, headers and what the JSON in the answer says."""
        connection = HTTPConnection(urlsplit(self.access["url"]).netloc, timeout=30)
        try:
            content = body if body is None or isinstance(body, str) else json.dumps(body)
            connection.request(method, path, content, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            is_json = "json" in (answer.headers["Content-Type"] or "")
            return answer.status, dict(answer.headers.items()), json.loads(text) if is_json else text
        finally:
            connection.close()

    def api(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        status, _, answer = self.request(
            method,
            f"/api/v1/{path}",
            body,
            **{"Authorization": f"Bearer {self.access['token']}", "Content-Type": "application/json"},
        )
        return status, answer


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One data folder for all tests here, so that the database is created once."""
    site = Site(tmp_path_factory.mktemp("up") / "data")
    yield site
    if site.process and site.process.poll() is None:
        site.process.terminate()
        site.end()
    site.manage("down").communicate(timeout=60)


@pytest.fixture(autouse=True)
def running(site: Site) -> None:
    site.start()


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(what: Callable[[], Any], timeout: float = RECOVERY_TIMEOUT) -> Any:
    """Wait for something to be true, and return it. Connections may fail meanwhile."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            if result := what():
                return result
        except OSError:
            pass
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.1)


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
