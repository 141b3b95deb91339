"""Waiting in an answer: so many at once that somebody is left to answer the others."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from hindsight_site.api.waiting import PLACES, Places
from tests import factories


def test_the_places_are_as_many_as_threads_wait() -> None:
    places, go = Places(2), threading.Event()
    taken = threading.Barrier(3)

    def wait() -> float:
        with places.granted(20.0) as seconds:
            taken.wait(timeout=10)
            go.wait(timeout=10)
            return seconds

    with ThreadPoolExecutor(2) as pool:
        held = [pool.submit(wait) for _ in range(2)]
        taken.wait(timeout=10)
        with places.granted(20.0) as seconds:
            assert seconds == 0
        go.set()
        assert [one.result() for one in held] == [20.0, 20.0]
    with places.granted(20.0) as seconds, places.granted(5.0) as inner, places.granted(0.0) as none:
        assert (seconds, inner, none) == (20.0, 5.0, 0.0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("face", ["rest", "mcp"])
def test_who_finds_too_many_waiting_is_told_at_once(team, agent, monkeypatch, face) -> None:
    from tests.mcp.caller import McpCaller

    _, reflection = factories.trace(agent, outcome="failed")
    assert reflection is not None
    monkeypatch.setattr(PLACES, "most", 1)
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with PLACES.granted(20.0):
            held.set()
            go.wait(timeout=20)
        connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(timeout=10)
    try:
        begun = time.monotonic()
        if face == "rest":
            told = factories.api_client(team, agent).get(f"/api/v1/reflections/{reflection.pk}?wait=5").json()
        else:
            told = McpCaller(team, agent).call("hindsight_status", id=str(reflection.pk), wait_seconds=5)
        assert told["status"] == "queued"
        assert time.monotonic() - begun < 3
    finally:
        go.set()
        holder.join()
