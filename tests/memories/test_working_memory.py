"""Working memory: written with importance and an end, packed by importance, gone at its time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts.tenancy import team_transaction
from memories.context_frame import CONTEXT_BEGIN, CONTEXT_END
from memories.enums import Status
from memories.importance import importance_of, word_of
from memories.lifecycle import sweep as lifecycle
from memories.models import Memory
from memories.packing import token_estimate
from memories.working import Item, pack
from tests import factories

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SESSION = "/api/v1/sessions/s-1/context"


def write(api, content: str, importance: object = "fact", **fields):
    body = {"kind": "fact", "tier": "working", "session_id": "s-1", "content": content, "importance": importance}
    answer = api.post("/api/v1/memories", {**body, **fields})
    assert answer.status_code == 201, answer.json()
    return answer.json()


def pass_time(agent, **moved) -> None:
    with team_transaction(agent.team):
        Memory.objects.of(agent.team).update(expires_at=timezone.now() - timedelta(seconds=1), **moved)


# --- Importance -----------------------------------------------------------------------------------------


def test_importance_is_a_word_or_a_number() -> None:
    assert [importance_of(word) for word in ("goal", "constraint", "Fact ", "variable")] == [1, 0.8, 0.6, 0.3]
    assert (importance_of(0), importance_of(0.55)) == (0, 0.55)
    for wrong in ("urgent", "", None, True, 1.1, -0.1, float("nan"), [], {}):
        with pytest.raises(ValueError, match=r"^"):
            importance_of(wrong)
    assert [word_of(n) for n in (1, 0.9, 0.8, 0.6, 0.5, 0.0)] == [
        "goal", "constraint", "constraint", "fact", "variable", "variable",
    ]  # fmt: skip


# --- Packing --------------------------------------------------------------------------------------------


def item(content: str, importance: float = 0.5, minute: int = 0) -> Item:
    return Item(None, content, importance, NOON + timedelta(minutes=minute), None)


def test_what_matters_most_stays_and_not_what_came_last() -> None:
    items = [item("Ship the March export.", 1.0), item("Never touch production.", 0.8, 1)]
    items += [item(f"Looked at file number {place} of the folder.", 0.3, 10 + place) for place in range(40)]
    packed = pack(items, 80)
    assert [one.content for one in packed.items[:2]] == ["Ship the March export.", "Never touch production."]
    assert packed.items[2].content == "Looked at file number 39 of the folder."
    assert packed.left_out > 30
    assert packed.tokens <= 80


def test_of_a_long_item_what_fits_is_kept() -> None:
    packed = pack(
        [
            item("Move every locker of the hall to the new building. " * 20, 1.0),
            item("Locker nine is the spare one. " * 9, 0.9),
        ],
        60,
    )
    assert len(packed.items) == 1
    assert packed.context.splitlines()[1].startswith("- [goal] Move every locker of the hall")
    assert packed.tokens <= 60


def test_nothing_is_no_text() -> None:
    assert pack([], 800).context == ""


texts = st.text(alphabet="abc déß中文。. \n", max_size=400).filter(str.strip)
some = st.lists(st.builds(item, texts, st.floats(0, 1), st.integers(0, 500)), max_size=12)


@given(some, st.integers(50, 400))
def test_packing_keeps_the_budget_and_the_order(items, budget) -> None:
    packed = pack(items, budget)
    assert token_estimate(packed.context) == packed.tokens <= budget
    assert len(packed.items) + packed.left_out == len(items)
    ranks = [(one.importance, one.created_at) for one in packed.items]
    assert ranks == sorted(ranks, reverse=True)
    least = min((one.importance for one in packed.items), default=2)
    left = [one for one in items if one not in packed.items]
    assert all(one.importance <= least for one in left)
    if packed.items:
        assert packed.context.startswith(CONTEXT_BEGIN)
        assert packed.context.endswith(CONTEXT_END)
        assert len(packed.context.splitlines()) == len(packed.items) + 2


# --- Over REST ------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_session_tells_its_goal_first(api) -> None:
    write(api, "The spare locker is number nine.", "variable")
    write(api, "Ship the March export today.", "goal")
    write(api, "Never touch production data.", 0.8)
    write(api, "Another session's goal is different.", "goal", session_id="s-2")
    told = api.get(SESSION).json()
    assert told["context"].splitlines() == [
        CONTEXT_BEGIN, "- [goal] Ship the March export today.", "- [constraint] Never touch production data.",
        "- [variable] The spare locker is number nine.", CONTEXT_END,
    ]  # fmt: skip
    assert [one["importance_word"] for one in told["items"]] == ["goal", "constraint", "variable"]
    assert (told["session_id"], told["token_budget"], told["left_out"]) == ("s-1", 800, 0)
    assert token_estimate(told["context"]) == told["tokens"]
    small = api.get(SESSION + "?token_budget=50").json()
    assert small["items"][0]["importance_word"] == "goal"
    assert small["left_out"] > 0


@pytest.mark.django_db
@pytest.mark.parametrize("budget", ["49", "20001", "many", "-1"])
def test_a_budget_out_of_range_is_refused(api, budget) -> None:
    assert api.get(f"{SESSION}?token_budget={budget}").status_code == 422


@pytest.mark.django_db
def test_an_unknown_or_odd_session_is_empty_or_refused(api) -> None:
    told = api.get("/api/v1/sessions/nowhere/context").json()
    assert (told["items"], told["context"], told["left_out"]) == ([], "", 0)
    assert api.get("/api/v1/sessions/a/b%20c/context").json()["session_id"] == "a/b c"
    assert api.get("/api/v1/sessions/a%00b/context").status_code == 422
    assert api.get(f"/api/v1/sessions/{'x' * 121}/context").status_code == 422


@pytest.mark.django_db
@pytest.mark.parametrize("importance", ["urgent", 2, None, [1]])
def test_an_odd_importance_is_refused(api, importance) -> None:
    body = {"kind": "fact", "tier": "working", "content": "x y z", "importance": importance}
    answer = api.post("/api/v1/memories", body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "importance"


@pytest.mark.django_db
def test_it_lives_for_an_hour_or_as_long_as_it_says(api) -> None:
    for fields, seconds in (({}, 3600), ({"ttl_seconds": 60}, 60)):
        written = write(api, f"The plan has {seconds} steps.", **fields)
        ends = datetime.fromisoformat(written["expires_at"]) - datetime.fromisoformat(written["created_at"])
        assert ends == pytest.approx(timedelta(seconds=seconds), abs=timedelta(seconds=5))


@pytest.mark.django_db
def test_past_its_time_it_is_gone_everywhere_before_a_sweep(agent, api, alice, browse) -> None:
    written = write(api, "Ship the March export today.", "goal")
    address = f"/api/v1/memories/{written['id']}"
    assert api.get(address).status_code == 200
    pass_time(agent)
    assert api.get(SESSION).json()["items"] == []
    assert api.get("/api/v1/memories?tier=working").json()["results"] == []
    assert api.get(address).status_code == 404
    assert b"March export" not in browse(alice).get("/memories/?status=any").content
    assert lifecycle.sweep(team=agent.team).changed == {"working_over": 1}
    with team_transaction(agent.team):
        memory = Memory.objects.of(agent.team).get(pk=written["id"])
    assert (memory.status, memory.content) == (Status.FORGOTTEN, "")


@pytest.mark.django_db
def test_a_session_is_the_agents_own(agent, api, other_api, team_api) -> None:
    write(api, "Ship the March export today.", "goal")
    second = factories.api_client(agent.team, factories.agent(agent.team, "second"))
    assert second.get(SESSION).json()["items"] == []
    assert other_api.get(SESSION).json()["items"] == []
    assert len(team_api.get(SESSION).json()["items"]) == 1


@pytest.mark.django_db
def test_what_is_to_last_is_never_merged_into_working_memory(api) -> None:
    passing = write(api, "The export wants the month as 2026-03.")
    body = {"kind": "fact", "content": "The export wants the month as 2026-03."}
    lasting = api.post("/api/v1/memories", body)
    assert lasting.status_code == 201
    assert lasting.json()["id"] != passing["id"]


@pytest.mark.django_db
@pytest.mark.parametrize("asked", [{}, {"include_archived": True}, {"at": "2020-01-01T00:00:00Z"}])
def test_no_recall_finds_what_is_past_its_time(agent, api, asked) -> None:
    write(api, "Ship the March export today.", "goal")
    ask = {"query": "ship the March export", "session_id": "s-1", "min_relevance": 0, "include_archived": True}
    assert len(api.post("/api/v1/recall", ask).json()["hits"]) == 1
    pass_time(agent)
    assert api.post("/api/v1/recall", {**ask, **asked}).json()["hits"] == []


@pytest.mark.django_db
def test_what_a_sweep_archived_is_recalled_on_request_and_restored_in_one_call(agent, api) -> None:
    memory = factories.memory(agent, "The export wants the month as 2026-03.", confidence=0.1)
    assert lifecycle.sweep(team=agent.team).changed == {"low_confidence": 1}
    ask = {"query": "export month 2026-03", "min_relevance": 0}
    assert api.post("/api/v1/recall", ask).json()["hits"] == []
    found = api.post("/api/v1/recall", {**ask, "include_archived": True}).json()["hits"]
    assert [(hit["memory"], hit["status"]) for hit in found] == [(str(memory.pk), "archived")]
    assert api.post(f"/api/v1/memories/{memory.pk}/restore", {}).status_code == 200
    assert len(api.post("/api/v1/recall", ask).json()["hits"]) == 1
