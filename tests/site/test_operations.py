"""The handbook names settings, commands and files that there are."""

from __future__ import annotations

import re
from pathlib import Path

from django.core.management import get_commands

ROOT = Path(__file__).resolve().parents[2]
HANDBOOK = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def test_settings_of_the_handbook_are_read() -> None:
    section = HANDBOOK.partition("\n## Settings\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row)}
    read = set(re.findall(r'env_\w+\("(\w+)"', (ROOT / "hindsight_site" / "settings.py").read_text(encoding="utf-8")))
    assert len(named) > 15
    assert named <= read


def test_commands_of_the_handbook_exist() -> None:
    named = set(re.findall(r"manage\.py ([a-z_]+)", HANDBOOK))
    assert {"backup", "restore", "check_invariants", "migrate"} <= named
    assert named <= get_commands().keys()


def test_documents_that_it_points_to_are_there() -> None:
    assert all((ROOT / "docs" / target).is_file() for target in re.findall(r"\]\(([^)#]+)\)", HANDBOOK))
