"""The engines that run here as real programs, each for as long as the tests need it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from memories.search import engines
from memories.search.engines.base import Address

START_SECONDS = 60.0
# The engine → the packages that it takes to run it here. qdrant: its client's local mode, which is no server.
PROGRAMS = {"milvus": ("pymilvus", "milvus_lite"), "qdrant": ("qdrant_client",), "chroma": ("chromadb_rust_bindings",)}


@dataclass(frozen=True)
class Running:
    """Where an engine is, and the process group it runs in; 0 in this process."""

    url: str
    group: int = 0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Have it take connections and answer nothing meanwhile."""
        os.killpg(self.group, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self.group, signal.SIGCONT)


def runs_here(name: str) -> bool:
    """Whether the engine and its driver are installed."""
    return name == "pgvector" or all(find_spec(package) for package in PROGRAMS[name])


@contextmanager
def running(name: str, folder: Path) -> Iterator[Running]:
    """Run an engine with its data in `folder`."""
    with ExitStack() as stack:
        if name == "qdrant":
            yield Running(":memory:")
            return
        port = _free_port()
        process = stack.enter_context(program(_command(name, port, folder), port))
        yield Running(f"http://127.0.0.1:{port}", process.pid)


def address(url: str, *, timeout_seconds: float = 10.0) -> Address:
    return Address(url=url, api_key="", collection="hs", ca_file="", timeout_seconds=timeout_seconds)


def connect(name: str, url: str, **options: float) -> engines.Engine:
    """A connection of its own, beside that of the settings."""
    from importlib import import_module

    return import_module(f"memories.search.engines.{name}").connect(address(url, **options))


@contextmanager
def program(command: list[str], port: int) -> Iterator[subprocess.Popen]:
    """Run a command in a process group of its own until it listens and as long as it is needed."""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            _wait(lambda: process.poll() is not None or _listens(port), command[0])
            assert process.poll() is None, f"{command[0]} ended with {process.returncode}"
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def _command(name: str, port: int, folder: Path) -> list[str]:
    programs = Path(sys.executable).parent
    if name == "chroma":
        return [str(programs / "chroma"), "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    serve = ["server", "--data-dir", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    return [str(programs / "milvus-lite"), *serve]


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def _listens(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def _wait(until: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + START_SECONDS
    while not until():
        assert time.monotonic() < end, f"{what} does not listen"
        time.sleep(0.1)
