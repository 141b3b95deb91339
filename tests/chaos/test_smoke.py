"""A few of the scenarios, so that they do not rot: the whole of them is `make chaos`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos import books, places
from tests.chaos.places import Place
from tests.chaos.running import run
from tests.chaos.scenarios import ALL
from tests.chaos.traffic import Ledger

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("chaos")
    with places.plain(folder) as place:
        yield place


@pytest.mark.parametrize("name", ["kill-web-process", "duplicate-deliveries"])
def test_nothing_is_lost_or_done_twice(place: Place, name: str) -> None:
    (scenario,) = [scenario for scenario in ALL if scenario.name == name]
    outcome = run(scenario, place)
    assert not outcome.wrong
    assert outcome.acknowledged > 3


def test_each_scenario_has_a_name_of_its_own() -> None:
    assert len({scenario.name for scenario in ALL}) == len(ALL)


def test_what_does_not_agree_is_told() -> None:
    found = books.Found([("1", "a"), ("2", "b"), ("3", "b")], [("4", "t")], 1, 2, 0, 1, 0, 0)
    ledger = Ledger(sent={"a", "b", "c", "t"}, memories={"a": "1", "c": "9"}, traces={"t": "4"})
    assert books.amiss(ledger, found, may_fail=True) == [
        "1 × acknowledged memory lost, as 'c'",
        "1 × memory written twice, as 'b'",
        "1 reflections left undone",
        "1 reflections done twice",
    ]
    assert "2 reflections failed" in books.amiss(ledger, found, may_fail=False)
    right = books.Found([("1", "a")], [("4", "t")], 0, 0, 0, 0, 0, 0)
    assert books.amiss(Ledger(sent={"a", "t"}, memories={"a": "1"}, traces={"t": "4"}), right, may_fail=False) == []
