"""Forms of values, the same value written otherwise, and what an error states about values."""

from __future__ import annotations

import pytest

from reflection.distill.shapes import respelt, shape_of
from reflection.distill.stated import allowed_values


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("2026-03", "YYYY-MM"),
        ("20260301", "YYYYMMDD"),
        ("2026-03-01T09:00:00Z", "YYYY-MM-DDTHH:MM:SS with a time zone"),
        ("march", "a month name"),
        ("5 March 2026", "a date in words"),
        ("next friday", "a relative date"),
        ("9 pm", "a time with am or pm"),
        ("ann@example.org", "an e-mail address"),
        ("/var/log/a.log", "an absolute path"),
        ("src/a.py", "a relative path"),
        ("30s", "a number with the unit s"),
        ("Northwind", "a name"),
    ],
)
def test_forms_are_named(value: str, form: str) -> None:
    shape = shape_of(value)
    assert shape is not None
    assert shape.english == form


@pytest.mark.parametrize("value", ["BX7731", "blue widgets and more", "", 7, None, "x" * 300])
def test_what_has_no_form_is_not_given_one(value: object) -> None:
    assert shape_of(value) is None


@pytest.mark.parametrize(
    ("old", "new", "how"),
    [
        ("W100", "#W100", "with a leading “#”"),
        ('"The Shallows"', "The Shallows", "without quotation marks"),
        ("createdAt", "created_at", "with underscores between the words"),
        ("DE 12", "DE12", "without spaces"),
        ("a", "b", None),
        ("", "#", None),
    ],
)
def test_the_same_letters_written_otherwise(old: str, new: str, how: str | None) -> None:
    found = respelt(old, new)
    assert (found[0] if found else None) == how


@pytest.mark.parametrize(
    ("message", "values"),
    [
        ("allowed: green, blue", ("green", "blue")),
        ("format must be one of ['csv', 'json' or 'xml']", ("csv", "json", "xml")),
        ("支持的格式：csv、json", ("csv", "json")),
        ("状态只能是 open 或 closed", ("open", "closed")),
        ("month must be YYYY-MM", ()),
        ("everything is allowed here", ()),
    ],
)
def test_allowed_values_are_read_from_an_error(message: str, values: tuple[str, ...]) -> None:
    assert allowed_values(message) == values
