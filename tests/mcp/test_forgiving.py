"""Arguments as models send them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.mcp import forgiving
from hindsight_site.mcp.tools import TABLE

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "word": {"type": "string", "enum": ["fact", "user_error"]},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "sure": {"type": "boolean"},
        "words": {"type": "array", "items": {"type": "string"}},
        "things": {"type": "array", "items": {"type": "object", "properties": {"sure": {"type": "boolean"}}}},
        "thing": {"type": "object"},
    },
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("name", "sent", "read"),
    [
        ("count", "5", 5),
        ("count", " 5 ", 5),
        ("count", 5.0, 5),
        ("count", "5.0", 5),
        ("count", "-3", -3),
        ("count", 5.5, 5.5),
        ("count", "many", "many"),
        ("share", "0.25", 0.25),
        ("share", "1", 1),
        ("share", "nan", "nan"),
        ("share", "inf", "inf"),
        ("sure", "true", True),
        ("sure", "False", False),
        ("sure", "yes", True),
        ("sure", 0, False),
        ("sure", "perhaps", "perhaps"),
        ("sure", 7, 7),
        ("words", "fact", ["fact"]),
        ("words", "fact, task", ["fact", "task"]),
        ("words", '["fact", "a, b"]', ["fact", "a, b"]),
        ("words", "", []),
        ("words", ["a", 1], ["a", "1"]),
        ("things", {"sure": "no"}, [{"sure": False}]),
        ("things", '[{"sure": "yes", "else": "1"}]', [{"sure": True, "else": "1"}]),
        ("things", '{"sure": 1}', [{"sure": True}]),
        ("things", "one, two", "one, two"),
        ("thing", '{"os": "linux"}', {"os": "linux"}),
        ("thing", "linux", "linux"),
        ("text", 5, "5"),
        ("text", True, "true"),
        ("text", {"a": "ü"}, '{"a": "ü"}'),
        ("text", "  kept  ", "  kept  "),
        ("word", "FACT", "fact"),
        ("word", "User error", "user_error"),
        ("word", "user-error", "user_error"),
        ("word", "guess", "guess"),
    ],
)
def test_what_is_plain_is_taken(name, sent, read) -> None:
    wanted, ignored = forgiving.read({name: sent}, SCHEMA, {})
    assert wanted == {name: read}
    assert type(wanted[name]) is type(read)
    assert ignored == []


def test_null_is_absent_and_the_unknown_is_told() -> None:
    wanted, ignored = forgiving.read({"text": None, "zebra": 1, "apple": None, "count": 2}, SCHEMA, {})
    assert wanted == {"count": 2}
    assert ignored == ["apple", "zebra"]
    assert forgiving.read({"word": "", "text": ""}, SCHEMA, {}) == ({"text": ""}, [])


def test_other_names() -> None:
    aliases = {"query": "text", "q": "text"}
    assert forgiving.read({"query": "x"}, SCHEMA, aliases) == ({"text": "x"}, [])
    assert forgiving.read({"query": "x", "text": None}, SCHEMA, aliases) == ({"text": "x"}, [])
    assert forgiving.read({"query": "x", "text": "own"}, SCHEMA, aliases) == ({"text": "own"}, ["query"])
    assert forgiving.read({"query": "x", "q": "y"}, SCHEMA, aliases) == ({"text": "x"}, ["q"])


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]), JSON))
def test_anything_can_be_read_and_reading_twice_changes_nothing(arguments) -> None:
    wanted, ignored = forgiving.read(arguments, SCHEMA, {})
    assert set(wanted) <= set(SCHEMA["properties"])
    assert ignored == (["other"] if "other" in arguments else [])
    once = {name: forgiving.mend(value, SCHEMA["properties"][name]) for name, value in wanted.items()}
    for name, value in once.items():
        if SCHEMA["properties"][name]["type"] != "boolean":
            assert value == wanted[name]


def test_aliases_name_arguments() -> None:
    for tool in TABLE.values():
        known = set(tool.input_schema["properties"])
        assert set(tool.aliases.values()) <= known, tool.name
        assert not set(tool.aliases) & known, tool.name
        assert set(tool.input_schema.get("required", ())) <= known, tool.name
        assert set(tool.output_schema["required"]) <= set(tool.output_schema["properties"]), tool.name
