"""The structures of the five kinds, and what a caller is told when one is off."""

from __future__ import annotations

import json
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.enums import FailureClass, Kind
from memories.structures import MAX_STRUCTURE_BYTES, STRUCTURES, StructureError, validate

FULL = {
    "fact": {
        "subject": "export endpoint",
        "predicate": "returns at most",
        "object": "500 rows",
        "valid_from": "2026-01-01T00:00:00Z",
        "valid_until": "2026-12-31T00:00:00Z",
    },
    "preference": {"holder": "user", "preference": "amounts with tax", "strength": 0.9},
    "experience": {
        "situation": {
            "task_type": "deployment",
            "features": ["two regions"],
            "environment": {"python": "3.12", "limits": {"memory": 512}},
            "text": "deploying while a migration runs",
        },
        "decision": {
            "action": "wait for the lock",
            "parameters": {"retries": 0, "name": ""},
            "reasoning": "…",
        },
        "outcome": {"success": False, "metrics": {"minutes": 12, "share": 0.5, "note": "slow", "ok": True}},
        "lesson": "Take the lock first.",
        "applies_when": "a migration runs",
        "not_when": "the table is empty",
        "failure_class": "permanent",
    },
    "task": {
        "task_goal": "move the service",
        "tools_used": ["deploy", "status"],
        "success_steps": ["build"],
        "failure_steps": [{"step": "deploy", "reason": "lock held"}],
        "final_result": "half moved",
        "failure_class": "transient",
        "resume_hint": "deploy the second region",
    },
    "relation": {"subject": "worker", "relation": "reads from", "object": "queue"},
}


def errors_of(kind: str, structure: object) -> dict[str, str]:
    with pytest.raises(StructureError) as caught:
        validate(kind, typing.cast(dict, structure))
    return dict(caught.value.errors)


def test_every_kind_has_a_structure():
    assert set(STRUCTURES) == set(Kind.values) == set(FULL)


@pytest.mark.parametrize("kind", FULL)
def test_a_full_structure_comes_back_as_it_was(kind):
    assert validate(kind, FULL[kind]) == FULL[kind]


@pytest.mark.parametrize("kind", FULL)
def test_an_empty_structure_is_allowed(kind):
    assert validate(kind, {}) == {}


@pytest.mark.parametrize(
    ("kind", "required"),
    [
        ("fact", {"subject", "predicate", "object"}),
        ("preference", {"holder", "preference"}),
        ("experience", {"lesson"}),
        ("task", {"task_goal"}),
        ("relation", {"subject", "relation", "object"}),
    ],
)
def test_only_the_core_is_required(kind, required):
    core = {name: value for name, value in FULL[kind].items() if name in required}
    assert validate(kind, core) == core
    for name in required:
        rest = {key: value for key, value in FULL[kind].items() if key != name}
        assert errors_of(kind, rest) == {name: "is required"}


def test_every_problem_is_told_at_once_with_its_field():
    errors = errors_of(
        "experience",
        {
            "situation": {"features": ["a", 3], "weather": "wet"},
            "outcome": {"success": "yes", "metrics": {"a": []}},
            "failure_class": "bad luck",
        },
    )
    assert set(errors) == {
        "situation.features.1",
        "situation.weather",
        "outcome.success",
        "outcome.metrics",
        "failure_class",
        "lesson",
    }
    assert errors["failure_class"] == f"must be one of {', '.join(FailureClass.values)}"


def test_an_unknown_field_is_refused_by_name_with_the_known_ones():
    errors = errors_of("fact", {**FULL["fact"], "trust": "human"})
    assert errors == {"trust": "is not a known field; known here: subject, predicate, object, valid_from, valid_until"}
    nested = errors_of("task", {"task_goal": "x", "failure_steps": [{"step": "a", "why": "b"}]})
    assert nested == {"failure_steps.0.why": "is not a known field; known here: step, reason"}


def test_unknown_fields_of_a_model_are_dropped_at_every_level():
    given_ = {"task_goal": "x", "trust": "human", "failure_steps": [{"step": "a", "scope": "team"}]}
    assert validate("task", given_, drop_unknown=True) == {"task_goal": "x", "failure_steps": [{"step": "a"}]}


def test_what_says_nothing_is_left_out_but_free_objects_are_kept_as_they_are():
    structure = {
        "lesson": "  Take the lock.  ",
        "applies_when": None,
        "situation": {"features": [], "text": None},
        "decision": {"parameters": {"name": "", "items": [], "limit": None}},
    }
    assert validate("experience", structure) == {
        "lesson": "Take the lock.",
        "decision": {"parameters": {"name": "", "items": [], "limit": None}},
    }


@pytest.mark.parametrize(("value", "kept"), [(30, "30"), (1.5, "1.5"), (True, "true"), ("30", "30")])
def test_the_object_of_a_fact_is_kept_as_text(value, kept):
    assert validate("fact", {"subject": "a", "predicate": "is", "object": value})["object"] == kept


def test_times_are_kept_in_utc():
    fact = {**FULL["fact"], "valid_from": "2026-01-01T08:00:00+08:00"}
    assert validate("fact", fact)["valid_from"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("valid_from", "2026-01-01T08:00:00", "needs a time zone, such as 2026-01-31T09:00:00Z"),
        ("valid_from", "2026-01-01", "needs a time zone, such as 2026-01-31T09:00:00Z"),
        ("valid_from", "soon", "must be an ISO 8601 time with a time zone, such as 2026-01-31T09:00:00Z"),
        (
            "valid_from",
            1_700_000_000,
            "must be an ISO 8601 time with a time zone, such as 2026-01-31T09:00:00Z",
        ),
        ("valid_from", "0001-01-01T00:00:00+14:00", "is out of range"),
        ("valid_until", "2025-01-01T00:00:00Z", "must be later than valid_from"),
    ],
)
def test_times_that_are_refused(field, value, message):
    assert errors_of("fact", {**FULL["fact"], field: value}) == {field: message}


@pytest.mark.parametrize(
    ("kind", "structure", "field"),
    [
        ("fact", {"subject": "a\x00b", "predicate": "is", "object": "c"}, "subject"),
        ("fact", {"subject": "a", "predicate": "is", "object": "\ud800"}, "object"),
        ("fact", {"subject": "a", "predicate": "is", "object": float("nan")}, "object"),
        ("fact", {"subject": " ", "predicate": "is", "object": "c"}, "subject"),
        ("fact", {"subject": "a" * 301, "predicate": "is", "object": "c"}, "subject"),
        ("fact", {"subject": ["a"], "predicate": "is", "object": "c"}, "subject"),
        ("preference", {"holder": "a", "preference": "b", "strength": 1.7}, "strength"),
        ("preference", {"holder": "a", "preference": "b", "strength": "0.5"}, "strength"),
        ("task", {"task_goal": "a", "tools_used": ["t"] * 51}, "tools_used"),
        ("task", {"task_goal": "a", "tools_used": "t"}, "tools_used"),
        ("task", {"task_goal": "a", "failure_steps": ["t"]}, "failure_steps.0"),
        ("experience", {"lesson": "a", "situation": "b"}, "situation"),
        ("experience", {"lesson": "a", "situation": {"environment": {"": 1}}}, "situation.environment"),
        ("experience", {"lesson": "a", "decision": {"parameters": {"n": 2**63}}}, "decision.parameters.n"),
        ("experience", {"lesson": "a", "decision": {"parameters": {"n": {1, 2}}}}, "decision.parameters.n"),
        ("experience", {"lesson": "a", "decision": {"parameters": {"a\x00": 1}}}, "decision.parameters"),
    ],
)
def test_types_sizes_and_characters_are_strict(kind, structure, field):
    assert list(errors_of(kind, structure)) == [field]


def test_depth_and_size_are_bounded():
    deep: dict = {}
    for _ in range(20):
        deep = {"a": deep}
    assert "nested" in " ".join(errors_of("experience", {"lesson": "a", "decision": {"parameters": deep}}).values())
    big = {"task_goal": "a", "success_steps": ["x" * 1_900] * 10}
    assert errors_of("task", big)[""].endswith(f"at most {MAX_STRUCTURE_BYTES} are allowed")


def test_what_is_no_object_and_an_unknown_kind():
    assert errors_of("fact", ["a"]) == {"": "must be an object"}
    assert errors_of("insight", {}) == {"kind": "must be one of fact, preference, experience, task, relation"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
NAMES = sorted({name for structure in FULL.values() for name in structure})


@given(
    kind=st.sampled_from(Kind.values),
    base=st.booleans(),
    changes=st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), JSON, max_size=4),
    drop=st.booleans(),
)
def test_anything_is_either_refused_or_storable_and_then_stays_the_same(kind, base, changes, drop):
    structure = {**(FULL[kind] if base else {}), **changes}
    try:
        normal = validate(kind, structure, drop_unknown=drop)
    except StructureError:
        return
    stored = json.dumps(normal, allow_nan=False)
    assert "\\u0000" not in stored
    assert validate(kind, json.loads(stored)) == normal
