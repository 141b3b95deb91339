"""A team's policy: its numbers, presets and limits, who may change it, its history, and that it is gone by."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.models import AuditEvent
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.refusals import Invalid, NotFound, Stale
from memories import actions, policy_table, team_policy
from memories.enums import Kind, Status, Tier
from memories.lifecycle import sweep as lifecycle
from memories.models import Memory, PolicyVersion
from memories.policy import LIFE, RANKING, Policy
from memories.policy_rows import ROWS
from memories.policy_table import PRESETS, ROW_OF, check, defaults, differing, policy_of
from reflection.review.weeks import opening_after, week_of
from tests import factories
from tests.memories.lives import at, lives

DAY = timedelta(days=1)


# --- The table ------------------------------------------------------------------------------------------


def test_the_defaults_of_the_table_are_those_of_the_rules() -> None:
    assert policy_of(defaults()) == Policy()


def test_every_row_can_be_read_by_people() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert row.label, row.key
        assert row.help, row.key
        assert row.low <= row.default <= row.high, row.key


def test_every_number_reaches_the_policy() -> None:
    """No number is shown that changes nothing."""
    for row in ROWS:
        other = row.high if row.default != row.high else row.low
        if row.whole or row.unit:
            other = row.default + 1 if row.default + 1 <= row.high else row.default - 1
        assert policy_of({row.key: other}) != Policy(), row.key


def test_presets_are_valid_and_known_again() -> None:
    assert set(PRESETS) == {"strict", "balanced", "keep_longer"}
    for preset in PRESETS.values():
        assert policy_table.preset_of(check(preset.values)) == preset.name
    assert policy_table.preset_of({"life.capacity": 77}) == ""
    strict, longer = (policy_of(PRESETS[name].values).life for name in ("strict", "keep_longer"))
    assert strict.episodic_archive_after < LIFE.episodic_archive_after < longer.episodic_archive_after


@pytest.mark.parametrize(
    ("given_values", "field", "message"),
    [
        ({"life.capacity": "many"}, "life.capacity", "must be a number, such as 10000"),
        ({"life.capacity": 9}, "life.capacity", "must be from 10 to 1,000,000 memories"),
        ({"life.capacity": 10.5}, "life.capacity", "must be a whole number"),
        ({"life.capacity": True}, "life.capacity", "must be a number"),
        ({"life.capacity": None}, "life.capacity", "must be a number"),
        ({"life.merge_cosine": 1.01}, "life.merge_cosine", "must be from 0 to 1"),
        ({"life.merge_cosine": "nan"}, "life.merge_cosine", "must be from 0 to 1"),
        ({"life.merge_cosine": float("inf")}, "life.merge_cosine", "must be from 0 to 1"),
        ({"team": 3}, "team", "is no number of the policy"),
        ({"life.episodic_archive_after": 30}, "life.episodic_archive_after", "must be longer than"),
        ({"life.fact_fade_after": 500}, "life.fact_archive_after", "must be longer than"),
        ({"ranking.relevance": 0.9}, "ranking.relevance", "must add up to 1"),
        ({"life.keep_recency": 0}, "life.keep_confidence", "must add up to 1"),
    ],
)
def test_what_is_wrong_is_named(given_values, field, message) -> None:
    with pytest.raises(Invalid) as refused:
        check(given_values)
    assert [error.field for error in refused.value.errors] == [field]
    assert message in refused.value.errors[0].message


def test_every_wrong_number_is_named_at_once() -> None:
    with pytest.raises(Invalid) as refused:
        check({"life.capacity": 1, "life.unused_step": 7, "review.hour": 24})
    assert len(refused.value.errors) == 3


def test_text_is_read_as_people_write_it() -> None:
    assert check({"life.capacity": " 500 ", "life.unused_step": "0,2"})["life.unused_step"] == 0.2


@given(st.sampled_from(ROWS), st.floats(0, 1))
def test_within_its_limits_a_number_comes_back_as_it_was_set(row, place) -> None:
    value = row.low + place * (row.high - row.low)
    value = round(value) if row.whole else value
    read = row.read(value)
    assert read == pytest.approx(value)
    assert differing({row.key: read}).get(row.key, row.default) == read


# --- Changing it ----------------------------------------------------------------------------------------


def change(team, by=SYSTEM, **arguments):
    with team_transaction(team):
        return actions.change_policy(team=team, by=by, **{"changes": {}, **arguments})


@pytest.mark.django_db
def test_a_change_is_a_version_with_its_author_and_its_event(team, alice) -> None:
    version = change(team, person(alice), changes={"life.capacity": 500}, note="smaller")
    assert (version.number, version.values, version.note) == (1, {"life.capacity": 500}, "smaller")
    assert version.actor_label == str(alice)
    with team_transaction(team):
        assert team_policy.of(team).life.capacity == 500
        assert team_policy.of(team).version == 1
        event = AuditEvent.objects.of(team).get(verb="policy.changed")
    assert event.detail == {"version": 1, "numbers": {"life.capacity": [10000, 500]}}
    assert len({event.before, event.after, ""}) == 3


@pytest.mark.django_db
def test_the_same_again_is_no_version(team) -> None:
    assert change(team) is None
    first = change(team, changes={"life.capacity": 500})
    assert change(team, changes={"life.capacity": 500}).number == first.number
    with team_transaction(team):
        assert PolicyVersion.objects.of(team).count() == 1


@pytest.mark.django_db
def test_changes_add_up_and_a_preset_starts_anew(team) -> None:
    change(team, changes={"life.capacity": 500})
    assert change(team, changes={"review.hour": 8}).values == {"life.capacity": 500, "review.hour": 8}
    strict = change(team, preset="strict")
    assert (strict.preset, strict.values) == ("strict", PRESETS["strict"].values)
    assert change(team, preset="strict", changes={"life.capacity": 500}).preset == ""
    assert change(team, preset="balanced").values == {}
    with pytest.raises(Invalid):
        change(team, preset="wild")


@pytest.mark.django_db
def test_two_editors_do_not_overwrite_each_other(team) -> None:
    change(team, changes={"life.capacity": 500}, expected_version=0)
    with pytest.raises(Stale) as refused:
        change(team, changes={"life.capacity": 600}, expected_version=0)
    assert refused.value.extra == {"revision": 1}


@pytest.mark.django_db
def test_an_earlier_version_comes_back_as_a_new_one(team) -> None:
    change(team, changes={"life.capacity": 500})
    change(team, changes={"life.capacity": 600})
    with team_transaction(team):
        assert actions.restore_policy(team=team, by=SYSTEM, number=1).number == 3
        assert team_policy.of(team).life.capacity == 500
        actions.restore_policy(team=team, by=SYSTEM, number=0)
        assert team_policy.of(team).life == LIFE
        with pytest.raises(NotFound):
            actions.restore_policy(team=team, by=SYSTEM, number=99)


@pytest.mark.django_db
def test_teams_have_their_own(team, other_team) -> None:
    change(team, changes={"life.capacity": 500})
    with team_transaction(other_team):
        assert team_policy.of(other_team) == Policy()


# --- It is gone by --------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_sweep_goes_by_it(agent) -> None:
    now = timezone.now()
    lives(agent, [at(now - 20 * DAY), at(now - 5 * DAY)])
    change(agent.team, preset="strict")
    run = lifecycle.sweep(team=agent.team, now=now)
    assert (run.changed, run.policy_version) == ({"idle": 1}, 1)


@pytest.mark.django_db
def test_writing_goes_by_it(agent) -> None:
    change(agent.team, changes={"life.working_ttl": 10, "life.confidence_cap.agent": 0.6})
    memory = factories.memory(agent, "The plan is to move the lockers.", tier=Tier.WORKING, confidence=0.9)
    assert memory.expires_at - memory.created_at == pytest.approx(timedelta(minutes=10), abs=timedelta(seconds=5))
    assert memory.confidence == pytest.approx(0.6)


@pytest.mark.django_db
def test_recall_goes_by_the_ranking_at_once(agent, api) -> None:
    factories.memory(agent, "Run the migrations before the tests.")
    ask = {"query": "run the migrations before the tests", "min_relevance": 0}
    before = api.post("/api/v1/recall", ask).json()["hits"][0]
    parts = before["parts"]
    expected = RANKING.relevance * before["relevance"] + RANKING.recency * parts["recency"]
    assert before["score"] == pytest.approx(
        (expected + RANKING.confidence * parts["confidence"]) * parts["heat"], abs=1e-3
    )
    change(agent.team, changes={"ranking.relevance": 0, "ranking.recency": 0, "ranking.confidence": 1})
    after = api.post("/api/v1/recall", ask).json()["hits"][0]
    assert after["score"] == pytest.approx(after["parts"]["confidence"] * after["parts"]["heat"], abs=1e-3)


def test_the_review_opens_when_the_policy_says() -> None:
    moment = timezone.now()
    week = week_of(moment, "Europe/Paris", 2, 14)
    assert (week.opens.weekday(), week.opens.hour) == (2, 14)
    assert week.begins < week.opens < week.ends
    assert moment <= opening_after(moment, "Europe/Paris", 2, 14) <= moment + 8 * DAY


# --- REST -----------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_rest_reads_changes_and_goes_back(team_api) -> None:
    policy = team_api.get("/api/v1/policy")
    assert (policy.json()["version"], policy.json()["preset"], policy["ETag"]) == (0, "balanced", '"0"')
    capacity = next(row for row in policy.json()["numbers"] if row["key"] == "life.capacity")
    assert (capacity["value"], capacity["default"], capacity["unit"], capacity["whole"]) == (
        10000,
        10000,
        "memories",
        True,
    )
    changed = team_api.patch("/api/v1/policy", {"values": {"life.capacity": 500}}, HTTP_IF_MATCH='"0"')
    assert (changed.status_code, changed.json()["version"]) == (200, 1)
    assert changed.json()["values"]["life.capacity"] == 500
    stale = team_api.patch("/api/v1/policy", {"values": {"life.capacity": 600}}, HTTP_IF_MATCH='"0"')
    assert (stale.status_code, stale.json()["revision"]) == (412, 1)
    back = team_api.post("/api/v1/policy/restore", {"to": 0}).json()
    assert (back["version"], back["values"]["life.capacity"]) == (2, 10000)
    history = team_api.get("/api/v1/policy/versions").json()["results"]
    assert [(row["version"], row["values"]) for row in history] == [(2, {}), (1, {"life.capacity": 500})]
    assert team_api.post("/api/v1/policy/restore", {"to": 77}).status_code == 404


@pytest.mark.django_db
def test_rest_says_what_is_wrong(team_api) -> None:
    answer = team_api.patch("/api/v1/policy", {"values": {"life.capacity": -1, "nothing": 1}})
    assert answer.status_code == 422
    assert {error["field"] for error in answer.json()["errors"]} == {"life.capacity", "nothing"}
    assert team_api.patch("/api/v1/policy", {"values": []}).status_code == 422


@pytest.mark.django_db
def test_rest_previews_numbers_that_are_not_saved(agent, team_api) -> None:
    made = lives(agent, [at(timezone.now() - 20 * DAY), at(timezone.now())])
    assert team_api.post("/api/v1/policy/preview", {}).json()["effects"] == []
    found = team_api.post("/api/v1/policy/preview", {"preset": "strict"}).json()
    assert (found["changes"], found["examined"], found["total"]) == (1, 2, 2)
    assert found["effects"][0]["rule"] == "idle"
    assert found["effects"][0]["examples"][0]["memory"] == str(made[0].pk)
    with team_transaction(agent.team):
        assert set(Memory.objects.of(agent.team).values_list("weight", flat=True)) == {1.0}
        assert team_policy.of(agent.team).version == 0
    lifecycle.sweep(team=agent.team)
    run = team_api.get("/api/v1/sweeps").json()["results"][0]
    assert (run["state"], run["examined"], run["changed"], run["by"]) == ("finished", 2, {}, "rules of life")


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["policy/preview", "policy/restore", "policy"])
def test_an_agents_token_has_no_say_in_the_teams_policy(agent, path) -> None:
    narrow = factories.api_client(agent.team, agent, ["admin"])
    call = narrow.patch if path == "policy" else narrow.post
    refused = call(f"/api/v1/{path}", {"values": {"life.capacity": 10}, "to": 0})
    assert (refused.status_code, refused.json()["code"]) == (403, "team_token_needed")


@pytest.mark.parametrize(
    ("key", "one", "many"),
    [
        ("life.approved_exempt", "day", "days"),
        ("life.unused_streak", "time in a row", "times in a row"),
        ("life.capacity", "memory", "memories"),
        ("life.merge_cosine", "", ""),
    ],
)
def test_one_is_said_in_the_singular(key, one, many) -> None:
    assert (ROW_OF[key].unit_of(1), ROW_OF[key].unit_of(2)) == (one, many)


# --- Pages ----------------------------------------------------------------------------------------------


def form_of(page) -> dict[str, str]:
    text = page.content.decode()
    fields = dict(re.findall(r'name="((?:life|ranking|review|keep)\.[a-z_.]+)"[^>]*?value="([^"]*)"', text))
    for name, options in re.findall(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', text):
        fields[name] = re.search(r'value="(\d+)" selected', options)[1]
    return {**fields, "version": re.search(r'name="version" value="(\d+)"', text)[1]}


@pytest.mark.django_db
def test_the_page_saves_what_its_form_says(team, alice, browse) -> None:
    shop = browse(alice)
    form = form_of(shop.get("/settings/policy/"))
    assert set(form) == {row.key for row in ROWS} | {"version"}
    assert shop.post("/settings/policy/", form).status_code == 302
    with team_transaction(team):
        assert team_policy.of(team).version == 0, "an unchanged form changes nothing"
    done = shop.post(
        "/settings/policy/", {**form, "life.capacity": "500", "note": "smaller", "do": "save"}, follow=True
    )
    text = done.content.decode()
    assert "Version 1 is in force" in text
    assert "<del>10000 memories</del> <ins>500 memories</ins>" in text
    assert "“smaller”" in text
    shop.post("/settings/policy/restore/", {"to": "0"})
    with team_transaction(team):
        assert team_policy.of(team).life == LIFE


@pytest.mark.django_db
def test_the_page_keeps_what_was_typed_when_it_refuses(alice, browse) -> None:
    shop = browse(alice)
    form = form_of(shop.get("/settings/policy/"))
    page = shop.post("/settings/policy/", {**form, "life.capacity": "<lots>", "review.hour": "9"})
    text = page.content.decode()
    assert page.status_code == 422
    assert 'value="&lt;lots&gt;"' in text
    assert 'value="9"' in text
    assert "must be a number, such as 10000." in text
    stale = shop.post("/settings/policy/", {**form, "version": "7"})
    assert stale.status_code == 412


@pytest.mark.django_db
def test_the_page_previews_before_saving(agent, alice, browse) -> None:
    lives(agent, [at(timezone.now() - 20 * DAY, content="The lockers are blue.")])
    shop = browse(alice)
    form = form_of(shop.get("/settings/policy/?preset=strict"))
    assert form["life.episodic_fade_after"] == "14"
    page = shop.post("/settings/policy/", {**form, "do": "preview"}).content.decode()
    assert "1 of 1 memories would change" in page
    assert "The lockers are blue." in page
    assert 'value="14"' in page
    with team_transaction(agent.team):
        assert team_policy.of(agent.team).version == 0


@pytest.mark.django_db
def test_viewers_read_the_rules_and_change_nothing(carol, browse) -> None:
    page = browse(carol).get("/settings/policy/").content.decode()
    assert "Owners and admins can change these numbers" in page
    assert 'value="save"' not in page
    assert browse(carol).post("/settings/policy/", {"life.capacity": "500"}).status_code == 403


@pytest.mark.django_db
def test_the_sweeps_page_tells_the_next_and_the_last(agent, carol, browse) -> None:
    assert "No sweep yet" in browse(carol).get("/settings/sweeps/").content.decode()
    lives(agent, [at(timezone.now() - 61 * DAY), at(timezone.now() - 61 * DAY, pinned=True)])
    text = browse(carol).get("/settings/sweeps/").content.decode()
    assert "Episode without a hit" in text
    assert "1 more would leave" in text
    lifecycle.sweep(team=agent.team)
    text = browse(carol).get("/settings/sweeps/").content.decode()
    assert "1 episode without a hit" in text
    assert "Nothing would change: 1 memories were looked at, of which 1 would leave" in text


@pytest.mark.django_db
def test_what_a_person_restores_stays(agent) -> None:
    memory = factories.memory(agent, "The blue locker is the spare one.", kind=Kind.TASK, confidence=0.1)
    now = timezone.now()
    assert lifecycle.sweep(team=agent.team, now=now).changed == {"low_confidence": 1}
    with team_transaction(agent.team):
        memory.refresh_from_db()
        actions.restore(team=agent.team, by=SYSTEM, memory=memory)
    assert lifecycle.sweep(team=agent.team, now=now + timedelta(hours=1)).changed == {}
    with team_transaction(agent.team):
        memory.refresh_from_db()
    assert (memory.status, memory.archived_at, memory.archived_by) == (Status.ACTIVE, None, "")
    assert lifecycle.sweep(team=agent.team, now=now + 31 * DAY).changed == {"low_confidence": 1}
