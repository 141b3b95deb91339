"""`manage.py up` for real, as a test drives it: started, asked, looked at from outside, killed and stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

ROOT = Path(__file__).resolve().parents[1]
RECOVERY_TIMEOUT = 60.0  # seconds

_INFERRED = ("DATABASE_URL", "SITE_URL", "ALLOWED_HOSTS", "SECRET_KEY", "Q_CLUSTER_NAME", "DJANGO_SETTINGS_MODULE")


@dataclass
class Site:
    """A data folder, and the `up` that runs with it, if any. `settings`: environment variables for it."""

    data_dir: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None
    access: dict[str, Any] = field(default_factory=dict)
    seconds_to_start: float = 0.0

    def manage(self, *arguments: str) -> subprocess.Popen[str]:
        """Run a command on the data folder, without the settings of whoever runs the tests."""
        environment = {name: value for name, value in os.environ.items() if name not in _INFERRED}
        return subprocess.Popen(
            [sys.executable, "manage.py", *arguments, "--data-dir", str(self.data_dir)],
            cwd=ROOT,
            env=environment | self.settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, timeout: float = 600.0) -> str:
        """Run a command to its end, and return what it printed. Raises RuntimeError when it fails."""
        command = self.manage(*arguments)
        output, errors = command.communicate(timeout=timeout)
        if command.returncode:
            raise RuntimeError(f"manage.py {arguments[0]} ended with {command.returncode}: {output}{errors}")
        return output

    def start(self, port: int = 0) -> None:
        """Have `up` run, and know how to reach it. Port 0: any that is free."""
        if self.process and self.process.poll() is None:
            return
        begun = time.monotonic()
        self.process = self.manage("up", "--port", str(port), "--json")
        line = self.process.stdout.readline() if self.process.stdout else ""
        self.seconds_to_start = time.monotonic() - begun
        assert line, self.process.communicate()[1]
        self.access = json.loads(line)

    def end(self) -> tuple[str, str]:
        """Wait until `up` ends, and return what it wrote after the first line."""
        assert self.process
        return self.process.communicate(timeout=60)

    def stop(self) -> None:
        """End `up` and its database, whatever state they are in."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):  # then by force, which is what `down` does in the end
                self.end()
        self.manage("down").communicate(timeout=120)

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

    def api(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Ask the API something as the demo team's agent."""
        own = {"Authorization": f"Bearer {self.access['token']}", "Content-Type": "application/json"}
        status, _, answer = self.request(method, f"/api/v1/{path}", body, **own, **headers)
        return status, answer


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(what: Callable[[], Any], timeout: float = RECOVERY_TIMEOUT, every: float = 0.1) -> Any:
    """Wait for something to be true, and return it. Connections may fail meanwhile."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            if result := what():
                return result
        except (OSError, HTTPException):
            pass
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(every)
