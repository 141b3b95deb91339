"""Log lines: whose they are, also when an answer is logged after the request, and no values of rows in them."""

from __future__ import annotations

import io
import json
import logging
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as site
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils.module_loading import import_string

from hindsight_site.accounts.models import User
from hindsight_site.log_lines import described
from hindsight_site.middleware import current_team_id

pytestmark = pytest.mark.django_db
SECRET, SECOND_LINE = "correct-horse-battery", "staple"


@pytest.fixture
def lines() -> Iterator[Any]:
    """`lines()`: what was logged since the test began, as an operator's stderr has it."""
    handler = logging.StreamHandler(io.StringIO())
    for name in site.LOGGING["handlers"]["stderr"]["filters"]:
        handler.addFilter(import_string(site.LOGGING["filters"][name]["()"])())
    formatter = site.LOGGING["formatters"]["json"]
    handler.setFormatter(import_string(formatter["()"])(formatter["fmt"]))
    root = logging.getLogger()
    root.addHandler(handler)
    yield lambda: [json.loads(line) for line in handler.stream.getvalue().splitlines()]
    root.removeHandler(handler)


def text_of(lines: Any) -> str:
    return json.dumps(lines())


def test_a_500_of_the_api_says_whose_it_was(lines, api, team) -> None:
    with connection.cursor() as cursor:  # a fault of ours: a table that the code needs is not there
        cursor.execute("ALTER TABLE memories_scope RENAME TO memories_scope_gone")
    api.raise_request_exception = False
    answer = api.get("/api/v1/scopes", headers={"X-Request-ID": "request-of-the-test"})
    assert answer.status_code == 500
    errors = [line for line in lines() if line["levelname"] == "ERROR"]
    assert {line["name"] for line in errors} == {"hindsight_site.problems", "django.request"}
    for line in errors:
        assert (line["request_id"], line["team_id"]) == ("request-of-the-test", str(team.pk))


def test_a_500_of_a_page_says_whose_it_was(lines, alice, team) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(alice)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE memories_memory RENAME TO memories_memory_gone")
    answer = client.get("/memories/?text=what-they-looked-for", headers={"X-Request-ID": "request-of-the-test"})
    assert answer.status_code == 500
    (line,) = [line for line in lines() if line["name"] == "django.request"]
    assert (line["request_id"], line["team_id"]) == ("request-of-the-test", str(team.pk))
    assert "what-they-looked-for" not in text_of(lines)


def test_the_next_request_has_ids_of_its_own(lines, api, other_api) -> None:
    current_team_id.set("")  # the factories set it
    api.get("/api/v1/me")
    logging.getLogger("of.the.test").warning("between two requests")
    (line,) = [line for line in lines() if line["name"] == "of.the.test"]
    assert line["request_id"] == line["team_id"] == ""


def twice_the_same() -> None:
    with transaction.atomic():
        User.objects.create(email=SECRET)
        User.objects.create(email=SECRET)


def not_null() -> None:
    with transaction.atomic():
        User.objects.create(email=f"{SECRET}\n{SECOND_LINE}", theme=None)


def not_json() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT %s::jsonb", [SECRET])


def not_a_number() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT %s::text::int", [SECRET])


@pytest.mark.parametrize("fault", [twice_the_same, not_null, not_json, not_a_number])
def test_the_values_of_a_row_are_not_logged(lines, db, fault) -> None:
    logger = logging.getLogger("of.the.test")
    try:
        fault()
    except DatabaseError as error:
        said = str(error)
        logger.exception("it failed")
        logger.warning("it failed: %s", error)
        logger.warning(error)
        try:
            raise RuntimeError("and then") from error
        except RuntimeError:
            logger.exception("again")
        try:
            raise RuntimeError("beside it")
        except RuntimeError as other:
            logger.error("with what came before", exc_info=other)
    assert SECRET in said, "or the test proves nothing"
    assert len(lines()) == 5
    assert SECRET not in text_of(lines)
    assert SECOND_LINE not in text_of(lines)
    first = lines()[0]["exc_info"]
    assert "Traceback" in first
    assert fault.__name__ in first


def test_a_broken_constraint_is_named(lines, db) -> None:
    try:
        twice_the_same()
    except DatabaseError:
        logging.getLogger("of.the.test").exception("it failed")
    assert "IntegrityError: 23505 accounts_user " in lines()[0]["exc_info"]


def fails_twice() -> None:
    try:
        raise ValueError("first")
    except ValueError as error:
        raise RuntimeError("second") from error


def test_other_errors_look_as_python_prints_them() -> None:
    with pytest.raises(RuntimeError) as caught:
        fails_twice()
    assert "".join(described(caught.value)) == "".join(traceback.format_exception(caught.value))


def test_a_ring_of_errors_ends() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__context__, two.__context__ = two, one
    assert "two" in "".join(described(one))
