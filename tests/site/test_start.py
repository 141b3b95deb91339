"""What a start loads, and what its forks then share: how soon a site is there, and what memory it holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_FORKED = """
import gc, os, re, sys
from pathlib import Path
from hindsight_site.sharing import share
held = [[number] for number in range(500_000)]
if sys.argv[1] == "shared":
    share()
if os.fork() == 0:
    gc.collect()
    print(re.search(r"Private_Dirty: +([0-9]+)", Path("/proc/self/smaps_rollup").read_text())[1], flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_a_fork_that_collects_its_garbage_does_not_copy_what_was_loaded() -> None:
    own = {how: int(_run(_FORKED, how)) for how in ("shared", "as it is")}  # kB
    assert own["as it is"] > 20_000
    assert own["shared"] < own["as it is"] / 4


_WEB = """
import django, gc
django.setup()
from hindsight_site.web import Serving, Site
Site(Serving("127.0.0.1:0", 1, 1, 1), lambda: None).load()
print(gc.get_freeze_count() > 100_000)
"""
_WORKER = """
import django, gc
django.setup()
from django.core.management import call_command
from hindsight_site import worker
worker.run = lambda announce: print(gc.get_freeze_count() > 100_000)
call_command("worker")
"""


@pytest.mark.parametrize(("command", "code"), [("web", _WEB), ("worker", _WORKER)])
def test_what_is_loaded_is_shared_when_the_forks_come(command: str, code: str, tmp_path: Path) -> None:
    assert _run(code, command, HINDSIGHT_DATA_DIR=str(tmp_path)) == "True"


_PAGES = """
import django, sys
django.setup()
from django.contrib import admin
print(len(admin.site._registry) > 0, "memories.admin" in sys.modules)
"""


@pytest.mark.parametrize(
    ("command", "loaded"), [("up", False), ("worker", False), ("web", True), ("check", True), ("migrate", True)]
)
def test_the_admins_pages_are_loaded_where_pages_are_served_or_checked(
    command: str, loaded: bool, tmp_path: Path
) -> None:
    assert _run(_PAGES, command, HINDSIGHT_DATA_DIR=str(tmp_path)) == f"{loaded} {loaded}"


def _run(code: str, argument: str, **given: str) -> str:
    """What code prints, run as a program with one argument, beside a database that is not asked anything."""
    settings = {"DJANGO_SETTINGS_MODULE": "hindsight_site.settings", "DATABASE_URL": "postgresql://127.0.0.1:1/none"}
    done = subprocess.run(
        [sys.executable, "-c", code, argument],
        cwd=ROOT, env={**os.environ, **settings, **given}, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return done.stdout.strip().splitlines()[-1]
