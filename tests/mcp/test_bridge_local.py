"""`manage.py mcp_bridge --local`: a server comes with the bridge and goes with it, even when it is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hindsight_site import running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ROOT = Path(__file__).resolve().parents[2]
OURS = ("DATABASE_URL", "SITE_URL", "ALLOWED_HOSTS", "SECRET_KEY", "HINDSIGHT_TOKEN", "HINDSIGHT_TOKEN_FILE")


def bridge(data_dir: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "manage.py", "mcp_bridge", *arguments, "--data-dir", str(data_dir)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in OURS},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ask(process: subprocess.Popen[bytes], method: str, **params: Any) -> dict[str, Any]:
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def is_gone(data_dir: Path, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while running.find(data_dir) is not None and time.monotonic() < deadline:
        time.sleep(0.1)
    return running.find(data_dir) is None


@pytest.fixture
def data_dir(tmp_path) -> Iterator[Path]:
    folder = tmp_path / "data"
    yield folder
    running.end(folder, grace=20)


def test_the_server_comes_and_goes_with_the_bridge(data_dir) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    first = bridge(data_dir, "--local")
    answer = ask(first, "initialize", **hello)
    assert answer["result"]["protocolVersion"] == "2025-11-25"
    assert ask(first, "tools/call", name="hindsight_recall", arguments={"query": "雪"})["result"]
    second = bridge(data_dir, "--local")
    assert ask(second, "initialize", **hello)["result"]
    _, log = second.communicate(timeout=60)
    assert second.returncode == 0
    assert b"Using the server that runs at" in log
    assert running.find(data_dir) is not None  # it was the first one's
    first.kill()
    first.communicate(timeout=60)
    assert is_gone(data_dir, 60)


def test_what_cannot_be_is_said_in_a_line(tmp_path) -> None:
    both = bridge(tmp_path, "--local", "--url", "https://hindsight.test")
    out, log = both.communicate(timeout=60)
    assert (both.returncode, out) == (1, b"")
    assert log.decode().strip().splitlines() == ["CommandError: Give --url or --local, not both."]
