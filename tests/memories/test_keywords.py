"""Keyword search on the real table: ranking, fences, narrowing before the limit, big scopes."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.utils import timezone

from hindsight_site.accounts.models import Team
from memories.enums import Kind, Status
from memories.models import MemoryTerms, Scope
from memories.search import frequencies, keywords
from memories.search.keywords import KeywordHit
from memories.search.narrowing import Narrowing
from memories.search.tokens import query_tokens
from tests.memories.search_rows import scope_of, store

ACTIVE = [str(Status.ACTIVE)]


@pytest.fixture
def scope(team: Team) -> Scope:
    return scope_of(team)


@pytest.fixture
def as_big(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every scope for a big one: kept frequencies, candidates from the rarest terms."""
    monkeypatch.setattr(keywords, "SMALL", 0)


def search(scope: Scope, text: str, **options: Any) -> list[KeywordHit]:
    given = {"scope_ids": [scope.pk], "statuses": ACTIVE, **options}
    return keywords.search(team_id=scope.team_id, query=query_tokens(text), **given)[0]


def found(scope: Scope, text: str, **options: Any) -> list[uuid.UUID]:
    return [hit.memory_id for hit in search(scope, text, **options)]


def test_the_memory_that_covers_more_comes_first(scope: Scope) -> None:
    both, one, _ = store(scope, ["Invoices go to the purple cabinet.", "Invoices go out on Monday.", "Tea is ready."])
    assert found(scope, "purple invoices") == [both, one]


def test_rare_words_beat_common_ones(scope: Scope) -> None:
    ids = store(scope, [*(f"deploy step number {i}" for i in range(20)), "the walrus sleeps"])
    assert found(scope, "deploy walrus")[0] == ids[-1]


def test_coverage_is_comparable_between_questions(scope: Scope) -> None:
    store(scope, ["The export job runs at two.", "Nothing else here."])
    whole = search(scope, "export job")[0]
    part = search(scope, "export job xylophone zeppelin kumquat")[0]
    assert 0 < part.coverage < whole.coverage < 1


def test_an_identifier_is_found_whole_and_by_its_parts(scope: Scope) -> None:
    first, second = store(scope, ["ERR_CONN_4031 closes the line.", "ERR_CONN_4032 is an expired certificate."])
    assert found(scope, "what is ERR_CONN_4032?") == [second, first]
    assert set(found(scope, "conn")) == {first, second}


def test_chinese_is_found_by_words_and_bigrams(scope: Scope) -> None:
    film, _ = store(scope, ["我推荐一部科幻电影给他。", "明天下午三点开会。"])
    assert found(scope, "那部电影叫什么名字？") == [film]


def test_other_teams_scopes_and_statuses_stay_out(scope: Scope, other_team: Team) -> None:
    elsewhere = scope_of(other_team)
    store(elsewhere, ["the secret walrus"])
    private = scope_of(scope.team, "private")
    store(private, ["the private walrus"])
    store(scope, ["the demoted walrus"], status=Status.DEMOTED)
    (mine,) = store(scope, ["the plain walrus"])
    assert found(scope, "walrus") == [mine]
    # Even when a scope of the other team is asked for by its id.
    assert found(scope, "secret walrus", scope_ids=[scope.pk, elsewhere.pk]) == [mine]


@pytest.mark.parametrize("small", [0, 2_000])
def test_frequencies_are_the_teams_own(
    scope: Scope, other_team: Team, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(keywords, "SMALL", small)
    elsewhere = scope_of(other_team)
    store(elsewhere, ["walrus"] * 30)
    scope_of(scope.team, "again")
    store(scope, ["walrus", "cabinet"])
    scopes = [scope.pk, elsewhere.pk]  # the other team's is asked for by its id
    _, statistics = keywords.search(
        team_id=scope.team_id, scope_ids=scopes, query=query_tokens("walrus cabinet"), statuses=ACTIVE
    )
    assert frequencies.scope_size(scope.team_id, scopes).memories == 2
    weighed = zip(statistics.weights, statistics.query.terms, strict=True)
    assert len({round(weight / term.weight, 6) for weight, term in weighed}) == 1


@pytest.mark.parametrize("big", [False, True])
def test_a_filter_comes_before_the_limit(scope: Scope, monkeypatch: pytest.MonkeyPatch, big: bool) -> None:
    if big:
        monkeypatch.setattr(keywords, "SMALL", 0)
    store(scope, ["walrus walrus"] * 30)
    (lesson,) = store(scope, ["a much longer text in which a walrus is named only once"], kind=Kind.EXPERIENCE)
    where = Narrowing(now=timezone.now(), kinds=[Kind.EXPERIENCE])
    assert found(scope, "walrus", limit=2, where=where) == [lesson]
    assert len(found(scope, "walrus", limit=2)) == 2


def test_expired_memories_are_narrowed_away(scope: Scope) -> None:
    store(scope, ["old walrus"], expires_at=timezone.now() - timezone.timedelta(hours=1))
    (fresh,) = store(scope, ["new walrus"])
    assert found(scope, "walrus", where=Narrowing(now=timezone.now())) == [fresh]


@pytest.mark.usefixtures("as_big")
def test_a_big_scope_ranks_like_a_small_one(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = store(scope, [f"report {i} of the {'walrus' if i % 9 == 0 else 'cabinet'} team" for i in range(60)])
    big = search(scope, "walrus report 18")
    monkeypatch.setattr(keywords, "SMALL", 2_000)
    small = search(scope, "walrus report 18")
    assert big[0].memory_id == small[0].memory_id == ids[18]
    assert big[0].coverage == pytest.approx(small[0].coverage)


@pytest.mark.usefixtures("as_big")
def test_candidates_of_a_big_scope_come_from_its_rarest_words(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keywords, "RARE_MATCHES", 5)
    ids = store(scope, [f"cabinet {i}" for i in range(40)] + ["walrus by the cabinet", "walrus alone"])
    assert found(scope, "cabinet walrus") == [ids[40], ids[41]]
    # A question of common words only is still answered.
    assert len(found(scope, "cabinet", limit=10)) == 10


def test_frequencies_of_big_scopes_are_kept(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frequencies, "KEPT_FROM", 1)
    store(scope, ["walrus", "cabinet"])
    count = lambda: frequencies.document_frequencies(scope.team_id, [scope.pk], ["walrus"])  # noqa: E731
    assert (count(), frequencies.scope_size(scope.team_id, [scope.pk]).memories) == ([1], 2)
    store(scope, ["walrus"])
    assert (count(), frequencies.scope_size(scope.team_id, [scope.pk]).memories) == ([1], 2)


def test_writing_again_replaces_and_deleting_removes(scope: Scope) -> None:
    (memory,) = store(scope, ["walrus"])
    row = (memory, scope.pk, Status.ACTIVE, ["cabinet", "it's", "back\\slash", "cabinet"])
    keywords.upsert(team_id=scope.team_id, rows=[row])
    assert found(scope, "walrus") == []
    assert found(scope, "cabinet") == [memory]
    assert MemoryTerms.objects.get(memory_id=memory).length == 4
    keywords.delete(team_id=scope.team_id, memory_ids=[memory])
    assert found(scope, "cabinet") == []


def test_nothing_asked_or_nowhere_to_look_is_no_hit(scope: Scope) -> None:
    store(scope, ["walrus"])
    assert found(scope, "what is the") == []
    assert found(scope, "walrus", scope_ids=[]) == []
    assert found(scope, "'); DROP TABLE memories_memory; -- % %s \\ :*&|!()") == []
