"""Log records as JSON lines, in which no error of the database shows a row's values.

PostgreSQL says them in its details: `Key (team_id, email)=(…, ann@acme.test) already exists`, `Failing row
contains (…)`, `invalid input syntax for type json: "…"`. A log is read by more people than a team's memories.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from typing import Any

import psycopg
from django.db import DataError, Error, IntegrityError
from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.json import JsonFormatter

# Errors about values: of these even the first line may hold one.
_OF_VALUES = (IntegrityError, DataError, psycopg.IntegrityError, psycopg.DataError)
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"


class JsonLines(JsonFormatter):
    """One JSON object a line. The request itself is left out: its address may hold what people look for."""

    def __init__(self, fmt: str) -> None:
        super().__init__(fmt, reserved_attrs=[*RESERVED_ATTRS, "request"])

    def formatException(self, exc_info: Any) -> str:  # noqa: N802 - the standard library's name
        error = exc_info[1]
        return "" if error is None else "".join(described(error)).rstrip("\n")


class ValueFilter(logging.Filter):
    """Keep the values out of messages too, where code logs an error as an argument."""

    def filter(self, record: logging.LogRecord) -> bool:
        if _is_databases(record.msg):
            record.msg = text_of(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(text_of(arg) if _is_databases(arg) else arg for arg in record.args)
        return True


def described(error: BaseException, seen: frozenset[int] = frozenset()) -> Iterator[str]:
    """The traceback of an error and of what led to it, as Python prints it but for the database's words."""
    seen |= {id(error)}
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None and id(before) not in seen:
        yield from described(before, seen)
        yield _CAUSE if error.__cause__ is not None else _CONTEXT
    if error.__traceback__ is not None:
        yield "Traceback (most recent call last):\n"
        yield from traceback.format_tb(error.__traceback__)
    if _is_databases(error):
        yield f"{type(error).__module__}.{type(error).__qualname__}: {text_of(error)}\n"
    else:
        yield from traceback.format_exception_only(error)


def text_of(error: Any) -> str:
    """What may be told of an error of the database: its code and what it is about, or its first line."""
    driver = error if isinstance(error, psycopg.Error) else error.__cause__
    if isinstance(driver, psycopg.Error) and driver.sqlstate:
        about = [driver.sqlstate, driver.diag.table_name, driver.diag.column_name, driver.diag.constraint_name]
        told = " ".join(part for part in about if part)
    else:
        told = "no code"
    if isinstance(error, _OF_VALUES) or isinstance(driver, _OF_VALUES):
        return told
    first = str(error).strip().partition("\n")[0]
    return f"{first} ({told})"


def _is_databases(thing: object) -> bool:
    return isinstance(thing, Error | psycopg.Error)
