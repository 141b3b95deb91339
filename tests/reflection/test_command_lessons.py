"""Lessons from shells, scripts and statements: what was put right between two commands."""

from __future__ import annotations

import pytest

from reflection.admission import Admitted, admit
from reflection.distill.commands import command_fix, command_shown, parts
from reflection.distill.setups import sets_up
from tests.reflection.traces import call, episode, lessons, result, run, trace

NO_TABLE = 'exit code: 1\nE   django.db.utils.ProgrammingError: relation "billing_invoice" does not exist'
MIGRATE = 'When `pytest -q` fails with “relation "…" does not exist”, run `python manage.py migrate` first.'


def told(*lines: tuple[str, str]) -> list[str]:
    form = run(*lines)
    found = lessons(form)
    assert all(isinstance(admit(lesson, form), Admitted) for lesson in found)
    return [lesson.content for lesson in found]


def test_a_command_put_before_the_same_command_is_told() -> None:
    assert told(("pytest -q", NO_TABLE), ("python manage.py migrate && pytest -q", "214 passed")) == [MIGRATE]


def test_a_command_run_in_between_gives_the_same_lesson() -> None:
    between = (("ls", "manage.py"), ("python manage.py migrate", "OK"))
    assert told(("pytest -q", NO_TABLE), *between, ("pytest -q | tail -3", "214 passed")) == [MIGRATE]


def test_runs_on_other_tables_and_files_give_one_text() -> None:
    texts = {
        told(
            (f"pytest tests/{name}.py -q", NO_TABLE.replace("billing", name)),
            (f"make seed && pytest tests/{name}.py -q", "ok"),
        )[0]
        for name in ("orders", "users")
    }
    assert texts == {'When `pytest … -q` fails with “relation "…" does not exist”, run `make seed` first.'}


def test_a_name_that_the_remedy_speaks_of_stays_in_the_error() -> None:
    (text,) = told(
        ("pytest -q", "exit code: 1\nModuleNotFoundError: No module named 'yaml'"),
        ("pip install pyyaml", "Successfully installed pyyaml-6.0"),
        ("pytest -q", "12 passed"),
    )
    assert text == "When `pytest -q` fails with “No module named 'yaml'”, run `pip install pyyaml` first."


def test_the_class_of_the_failure_is_kept() -> None:
    form = run(
        ("jq . a.json", "exit code: 127\nbash: jq: command not found"),
        ("apt-get install -y jq", "ok"),
        ("jq . a.json", "{}"),
    )
    (lesson,) = lessons(form)
    assert lesson.failure_class == "environment"
    assert lesson.structure["decision"]["parameters"] == {"first": "bash(command=apt-get install -y jq)"}


@pytest.mark.parametrize(
    ("old", "printed", "new", "advice"),
    [
        ("npm install", "npm ERR! code ERESOLVE", "npm install --legacy-peer-deps", "add `--legacy-peer-deps`"),
        ("pytest -q", "exit code: 1\nNo module named 'app'", "PYTHONPATH=. pytest -q", "put `PYTHONPATH=.` before it"),
        ("python a.py", "bash: python: command not found", "python3 a.py", "use `python3` in place of `python`"),
        (
            "docker-compose up -d",
            "bash: docker-compose: command not found",
            "docker compose up -d",
            "use `docker compose` in place of `docker-compose`",
        ),
        ("npm test", "npm ERR! enoent no package.json", "cd web && npm test", "run `cd web` first"),
        ("systemctl restart x", "exit code: 1\nAccess denied", "sudo systemctl restart x", "put `sudo` before it"),
    ],
)
def test_edits_of_a_command_are_told(old: str, printed: str, new: str, advice: str) -> None:
    (text,) = told((old, printed), (new, ""))
    assert text.startswith(f"When `{command_shown(old)}` fails with “")
    assert text.endswith(f"”, {advice}.")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pytest -q", "pytest -q || true"),
        ("pytest -q", "pytest -q -k 'not slow'"),
        ("pytest -q", "pytest -q --ignore=tests/slow"),
        ("pytest -q", "git stash && pytest -q"),
        ("npm ci", "rm -rf node_modules && npm ci"),
        ("git push", "git push -f"),
        ("git commit -m x", "git commit -m x --no-verify"),
        ("curl https://x.example", "curl -k https://x.example"),
        ("pytest tests/a.py", "pytest tests/b.py"),
        ("cat /etc/hots", "cat /etc/hosts"),
        ("git comit -m x", "git commit -m x"),
    ],
)
def test_hiding_a_failure_or_doing_something_else_is_no_lesson(old: str, new: str) -> None:
    assert told((old, "exit code: 1\nerror: it failed, commit or https://x.example"), (new, "fine")) == []


@pytest.mark.parametrize("between", ["git add .", "cat > a.py <<EOF\nx = 1\nEOF", "sed -i s/3/4/ a.py"])
def test_mending_the_code_is_no_lesson_for_others(between: str) -> None:
    form = run(("pytest -q", "exit code: 1\nAssertionError: 3 != 4"), (between, ""), ("pytest -q", "1 passed"))
    assert lessons(form) == []
    assert "step 0 (bash) “AssertionError: 3 != 4”" in episode(form).content


def test_statements_are_commands_too() -> None:
    column = 'ERROR: column "nam" does not exist. Perhaps you meant "name"'
    (text,) = [
        lesson.content
        for lesson in lessons(
            trace(
                call("query", sql="SELECT nam FROM users WHERE id = 7"),
                result("query", column),
                call("query", sql="SELECT name FROM users WHERE id = 7"),
                result("query", '[{"name": "Ann"}]'),
            )
        )
    ]
    assert text == (
        'When `SELECT nam FROM users WHERE id = …` fails with “column "nam" does not exist.'
        ' Perhaps you meant "name"”, use `name` in place of `nam`.'
    )


def test_a_chinese_task_gets_a_chinese_lesson_about_commands() -> None:
    form = run(
        ("pytest -q", NO_TABLE), ("python manage.py migrate && pytest -q", "214 passed"), task="运行测试并报告结果"
    )
    assert [lesson.content for lesson in lessons(form)] == [
        '运行 `pytest -q` 报错“relation "…" does not exist”时，先执行 `python manage.py migrate`。'
    ]


def test_the_episode_names_the_error_and_the_command_that_worked() -> None:
    content = episode(run(("pytest -q", NO_TABLE), ("python manage.py migrate && pytest -q", "214 passed"))).content
    assert 'relation "billing_invoice" does not exist' in content
    assert "`python manage.py migrate && pytest -q` worked at step 2" in content


# The pure parts


def test_a_command_is_split_outside_quotes_and_without_what_cuts_its_output() -> None:
    assert parts("cd a && echo 'x && y'; pytest -q 2>&1 | tail -5") == ["cd a", "echo 'x && y'", "pytest -q"]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("python manage.py migrate", "python manage.py migrate"),
        ("cd /srv/app && pytest tests/test_a.py -q", "pytest … -q"),
        ("pytest --rootdir=/srv/app -q", "pytest --rootdir=… -q"),
        ("npm run build", "npm run build"),
        ("", ""),
    ],
)
def test_a_command_is_shown_as_its_kind(command: str, shown: str) -> None:
    assert command_shown(command) == shown


@pytest.mark.parametrize("command", ["rm -rf build", "git checkout main", "kill 1", "chmod 777 a", "echo x > a.txt"])
def test_what_throws_work_away_is_no_preparation(command: str) -> None:
    assert not sets_up(command, "build main failed in a.txt")


def test_another_command_is_no_fix() -> None:
    assert command_fix("make test", "make lint", "test failed") is None
    assert command_fix("make test", "make test", "test failed") is None
