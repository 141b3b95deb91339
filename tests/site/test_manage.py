"""What `manage.py` decides before any command runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import manage

ROOT = Path(manage.__file__).resolve().parent


@pytest.mark.parametrize(
    ("arguments", "data_dir", "rest"),
    [
        (["up", "--data-dir", "/a"], "/a", ["up"]),
        (["migrate", "--data-dir=/a b", "memories", "-v", "0"], "/a b", ["migrate", "memories", "-v", "0"]),
        (["up", "--port", "1"], None, ["up", "--port", "1"]),
        (["shell", "-c", "print(1)"], None, ["shell", "-c", "print(1)"]),
        (["help", "up"], None, ["help", "up"]),
        ([], None, []),
    ],
)
def test_the_data_folder_is_taken_before_the_settings_are_read(
    arguments: list[str], data_dir: str | None, rest: list[str]
) -> None:
    assert manage.take_data_dir(arguments) == (data_dir, rest)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["migrate"], True),
        (["shell"], True),
        (["demo", "--again"], True),
        (["migrate", "--help"], False),
        (["--version"], False),
        (["help", "migrate"], False),
        (["up"], False),
        (["down"], False),
        ([], False),
    ],
)
def test_only_commands_that_work_on_the_database_start_it(arguments: list[str], expected: bool) -> None:
    assert manage.needs_database(arguments) is expected


@pytest.mark.parametrize(
    ("options", "variables", "expected"),
    [
        (["up", "--data-dir", "{file}/x"], {}, "The data folder cannot be used (Not a directory: {file}/x)"),
        (
            ["migrate"],
            {"DATABASE_URL": "nonsense"},
            "DATABASE_URL is not an address of the form postgresql://",
        ),
        (
            ["up", "--port", "0"],
            {"DATABASE_URL": "postgresql://x@127.0.0.1:1/x"},
            "The database does not answer",
        ),
    ],
)
def test_what_is_in_the_way_is_one_clear_line(
    tmp_path: Path, options: list[str], variables: dict[str, str], expected: str
) -> None:
    file = tmp_path / "file"
    file.touch()
    result = subprocess.run(
        [sys.executable, "manage.py", *(option.format(file=file) for option in options)],
        cwd=ROOT,
        env={**os.environ, "HINDSIGHT_DATA_DIR": str(tmp_path / "data"), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    last_line = result.stderr.strip().splitlines()[-1]
    assert result.returncode == 1
    assert result.stdout == ""
    assert expected.format(file=file) in last_line
    assert "Traceback" not in result.stderr
