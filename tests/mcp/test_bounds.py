"""Results that fit: texts and lists give way, ids stay."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.mcp import bounds

HITS = st.lists(st.fixed_dictionaries({"memory": st.uuids().map(str), "snippet": st.text(max_size=3000)}), max_size=40)


@given(HITS, st.integers(8_000, 60_000))
def test_ids_stay(hits, limit) -> None:
    fitted, cut = bounds.fit({"hits": hits}, limit)
    assert bounds.size_of(fitted) <= limit
    assert cut == (bounds.size_of({"hits": hits}) > limit)
    ids = [hit["memory"] for hit in hits]
    assert [hit["memory"] for hit in fitted["hits"]] == ids[: len(fitted["hits"])]
    if bounds.size_of({"hits": [{"memory": i, "snippet": "x" * 480} for i in ids]}) <= limit:
        assert len(fitted["hits"]) == len(ids)  # lists give way last


def test_what_fits_is_left_alone() -> None:
    value = {"a": ["ü" * 100], "b": None, "c": 1.5}
    assert bounds.fit(value, 10_000) == (value, False)


def test_lists_give_way_at_last() -> None:
    steps = [{"id": str(uuid.uuid4()), "content": "x" * 5000} for _ in range(2_000)]
    fitted, cut = bounds.fit({"steps": steps}, 100_000)
    assert cut
    assert bounds.size_of(fitted) <= 100_000
    assert fitted["steps"][0]["id"] == steps[0]["id"]
    assert fitted["steps"][0]["content"].endswith("…")


@given(st.text(max_size=200), st.integers(0, 100))
def test_a_cut_text_is_whole_characters(text, limit) -> None:
    short, cut = bounds.cut(text, limit)
    assert len(short.encode()) <= limit or not cut
    assert text.startswith(short)
    assert cut == (len(text.encode()) > limit)
