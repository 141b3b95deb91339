"""One `up` for each data folder, told by locks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hindsight_site import running
from hindsight_site.running import AlreadyRunning, Running

ROOT = Path(__file__).resolve().parents[2]

# Claims the folder, tells of it, and waits: for a signal, or a line on its standard input.
HOLDER = """
import os, sys
from pathlib import Path
from hindsight_site import running
claim = running.claim(Path(sys.argv[1]))
running.note(claim, running.Running(os.getpid(), "http://127.0.0.1:1234"))
print("claimed", flush=True)
sys.stdin.readline()
"""
# The same, with a child that holds the children's lock and will not go by itself.
PARENT = HOLDER.replace(
    "print(",
    """
import subprocess
child = subprocess.Popen(["sleep", "60"], pass_fds=[claim.children], start_new_session=True)
running.note(claim, running.Running(os.getpid(), "http://127.0.0.1:1234", (child.pid,)))
print(""",
)


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Run one of the scripts above on the test's folder, until it has claimed it."""
    started = []

    def start(code: str) -> subprocess.Popen[str]:
        holder = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(holder)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "claimed\n"
        return holder

    yield start
    for holder in started:
        holder.kill()
        holder.communicate()


def test_nothing_runs_in_an_unused_folder(tmp_path: Path) -> None:
    assert running.find(tmp_path) is None
    assert running.find(tmp_path / "missing") is None
    assert running.end(tmp_path, grace=1) is None


def test_a_running_one_is_found_and_refused_a_second(tmp_path: Path, hold) -> None:
    holder = hold(HOLDER)
    assert running.find(tmp_path) == Running(holder.pid, "http://127.0.0.1:1234")
    with pytest.raises(AlreadyRunning, match=f"runs at http://127.0.0.1:1234 .* \\(process {holder.pid}\\)"):
        running.claim(tmp_path)


def test_a_file_that_nobody_vouches_for_is_not_believed(tmp_path: Path, hold) -> None:
    holder = hold(HOLDER)
    holder.kill()
    holder.wait()
    assert (tmp_path / "up.json").exists()
    assert running.find(tmp_path) is None
    claim = running.claim(tmp_path)
    try:
        assert running.find(tmp_path) is None  # this one has not said anything yet
        running.note(claim, Running(1, "http://[::1]:1"))
        assert running.find(tmp_path) == Running(1, "http://[::1]:1")
    finally:
        os.close(claim.own)
        os.close(claim.children)


@pytest.mark.parametrize("is_stubborn", [False, True])
def test_end_stops_it_kindly_or_by_force(tmp_path: Path, hold, is_stubborn: bool) -> None:
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    holder = hold(stubborn + HOLDER if is_stubborn else HOLDER)
    assert running.end(tmp_path, grace=0.5) == Running(holder.pid, "http://127.0.0.1:1234")
    assert holder.wait() == -(signal.SIGKILL if is_stubborn else signal.SIGTERM)


def test_children_left_by_a_killed_one_are_ended(tmp_path: Path, hold, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_ORPHAN_GRACE", 1.0)
    holder = hold(PARENT)
    found = running.find(tmp_path)
    assert found is not None
    (group,) = found.groups
    holder.kill()
    holder.wait()
    os.killpg(group, 0)  # it lives on
    claim = running.claim(tmp_path)
    os.close(claim.own)
    os.close(claim.children)
    state = Path(f"/proc/{group}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"
