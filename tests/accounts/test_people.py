"""Who is in a team: roles, leaving, removing, handing over, settings, and deleting the whole of it."""

from __future__ import annotations

import re

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse
from django_q.models import OrmQ

from hindsight_site.accounts import deletion, people, permissions, tasks
from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.enums import DeletionState, TeamRole
from hindsight_site.accounts.models import AuditEvent, Membership, Team, TeamDeletion, User
from hindsight_site.accounts.tenancy import enter_team, team_transaction
from hindsight_site.refusals import Conflict
from memories.models import Memory
from tests import factories

PAGES = ["team", "account", "new_team", "team_settings"]


def membership(team: Team, user: User) -> Membership:
    enter_team(team)
    return Membership.objects.of(team).get(user=user)


def role_of(team: Team, user: User) -> str:
    enter_team(team)
    return Membership.objects.of(team).filter(user=user).values_list("role", flat=True).first() or "none"


def verbs(team: Team) -> list[str]:
    enter_team(team)
    return list(AuditEvent.objects.of(team).order_by("at", "id").values_list("verb", flat=True))


@pytest.fixture
def dora(team: Team) -> User:
    return factories.member(team, "dora@acme.test", "admin")


# --- What everybody sees ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_pages_have_one_heading_and_no_inline_style_or_script(browse, alice, bob, name):
    page = browse(alice).get(reverse(name)).content.decode()
    assert not re.search(r"<[^>]+\s(style|on\w+)=", page)
    assert not re.search(r"<script(?![^>]*\ssrc=)", page)
    assert page.count("<h1") == 1


@pytest.mark.parametrize("name", PAGES)
def test_pages_ask_few_questions(browse, alice, bob, carol, dora, name, django_assert_max_num_queries):
    client = browse(alice)
    with django_assert_max_num_queries(15):
        assert client.get(reverse(name)).status_code == 200


@pytest.mark.parametrize("name", PAGES)
def test_strangers_are_asked_to_log_in(db, name):
    assert Client().get(reverse(name)).url.startswith(reverse("login"))


def test_a_viewer_sees_who_is_there_and_nothing_to_press(browse, alice, bob, carol):
    page = browse(carol).get(reverse("team")).content.decode()
    assert "alice@acme.test" in page
    assert "bob@acme.test" in page
    assert reverse("invite") not in page
    assert "/role/" not in page


def test_another_teams_people_are_not_shown(browse, alice, mallory):
    assert "mallory" not in browse(alice).get(reverse("team")).content.decode()


# --- Who may ------------------------------------------------------------------------------------------

MANAGERS = {"owner", "admin"}


@pytest.mark.parametrize("role", TeamRole.values)
@pytest.mark.parametrize(
    ("name", "who"),
    [
        ("change_role", MANAGERS),
        ("remove_member", MANAGERS),
        ("invite", MANAGERS),
        ("transfer_team", {"owner"}),
        ("delete_team", {"owner"}),
    ],
)
def test_what_each_role_may_do(browse, team, alice, bob, role, name, who):
    actor = alice if role == "owner" else factories.member(team, "actor@acme.test", role)
    target = membership(team, bob)
    args = [target.pk] if name in {"change_role", "remove_member"} else []
    form = {
        "role": "viewer", "email": "new@acme.test", "member": str(target.pk), "confirmation": team.slug
    }  # fmt: skip
    answer = browse(actor).post(reverse(name, args=args), form)
    assert answer.status_code == (302 if role in who else 403)
    if role not in who:
        assert role_of(team, bob) == "reviewer"
        assert Team.objects.get(pk=team.pk).suspended_at is None


@pytest.mark.parametrize("role", TeamRole.values)
def test_who_may_open_the_settings(browse, team, alice, role):
    actor = alice if role == "owner" else factories.member(team, "actor@acme.test", role)
    answer = browse(actor).get(reverse("team_settings"))
    assert answer.status_code == (200 if role in MANAGERS else 403)
    if role in MANAGERS:
        assert ("Delete the team" in answer.content.decode()) == (role == "owner")


@pytest.mark.parametrize("name", ["change_role", "remove_member"])
def test_a_member_of_another_team_is_not_found(browse, alice, team, other_team, mallory, name):
    theirs = membership(other_team, mallory)
    assert browse(alice).post(reverse(name, args=[theirs.pk]), {"role": "viewer"}).status_code == 404
    assert role_of(other_team, mallory) == "owner"


def test_ownership_cannot_go_to_a_member_of_another_team(browse, alice, team, other_team, mallory):
    theirs = membership(other_team, mallory)
    assert browse(alice).post(reverse("transfer_team"), {"member": str(theirs.pk)}).status_code == 404
    assert role_of(team, alice) == "owner"


@pytest.mark.parametrize("name", ["change_role", "remove_member", "leave_team", "transfer_team", "delete_team"])
def test_what_changes_something_wants_a_post(browse, team, alice, name):
    args = [membership(team, alice).pk] if name in {"change_role", "remove_member"} else []
    assert browse(alice).get(reverse(name, args=args)).status_code == 405


# --- Roles, removing, leaving -------------------------------------------------------------------------


def test_changing_a_role_changes_what_one_may(browse, team, alice, carol):
    client = browse(carol)
    assert client.get(reverse("team_settings")).status_code == 403
    browse(alice).post(reverse("change_role", args=[membership(team, carol).pk]), {"role": "admin"})
    assert client.get(reverse("team_settings")).status_code == 200
    assert verbs(team)[-1] == "member.role_changed"


def test_an_admin_can_neither_make_nor_unmake_owners(browse, team, alice, bob, dora):
    client = browse(dora)
    for person_, role in ((bob, "owner"), (alice, "viewer")):
        answer = client.post(reverse("change_role", args=[membership(team, person_).pk]), {"role": role})
        assert answer.status_code == 403
        assert "may not make, change or remove an owner" in answer.content.decode()
    assert client.post(reverse("remove_member", args=[membership(team, alice).pk])).status_code == 403
    assert (role_of(team, alice), role_of(team, bob)) == ("owner", "reviewer")


def test_an_unknown_role_is_refused(browse, team, alice, bob):
    answer = browse(alice).post(reverse("change_role", args=[membership(team, bob).pk]), {"role": "king"})
    assert answer.status_code == 422
    assert role_of(team, bob) == "reviewer"


def test_the_last_owner_can_neither_leave_nor_be_demoted(browse, team, alice, bob):
    client = browse(alice)
    for answer in (
        client.post(reverse("leave_team")),
        client.post(reverse("change_role", args=[membership(team, alice).pk]), {"role": "admin"}),
    ):
        assert answer.status_code == 409
        assert "is the only owner of Acme" in answer.content.decode()
    assert role_of(team, alice) == "owner"


def test_one_of_two_owners_can_leave(browse, team, alice, bob):
    browse(alice).post(reverse("change_role", args=[membership(team, bob).pk]), {"role": "owner"})
    assert browse(alice).post(reverse("leave_team")).status_code == 302
    assert (role_of(team, alice), role_of(team, bob)) == ("none", "owner")
    assert verbs(team)[-1] == "member.left"


def test_two_owners_cannot_both_leave_by_stale_pages(team, alice, bob):
    allowed = permissions.ROLES_IN_GIFT["owner"]
    one, two = membership(team, alice), membership(team, bob)
    two = people.change_role(team=team, by=SYSTEM, membership=two, role="owner", allowed=allowed)
    people.leave(team=team, by=person(alice), membership=one)
    with pytest.raises(Conflict, match="only owner"):
        people.leave(team=team, by=person(bob), membership=two)
    with pytest.raises(Conflict, match="no longer in the team"):
        people.leave(team=team, by=person(alice), membership=one)


def test_a_removed_person_is_out_at_once(browse, team, alice, bob):
    client = browse(bob)
    assert client.get(reverse("memories")).status_code == 200
    browse(alice).post(reverse("remove_member", args=[membership(team, bob).pk]))
    assert client.get(reverse("memories")).status_code == 403
    assert role_of(team, bob) == "none"


def test_handing_over_swaps_the_roles(browse, team, alice, bob):
    answer = browse(alice).post(reverse("transfer_team"), {"member": str(membership(team, bob).pk)})
    assert answer.status_code == 302
    assert (role_of(team, alice), role_of(team, bob)) == ("admin", "owner")
    assert verbs(team)[-1] == "team.ownership_transferred"
    assert browse(alice).post(reverse("transfer_team"), {"member": "nonsense"}).status_code == 403


# --- Settings -----------------------------------------------------------------------------------------


def test_a_team_is_renamed_and_moved(browse, team, alice):
    client = browse(alice)
    answer = client.post(reverse("team_settings"), {"name": "  Acme   West ", "time_zone": "Europe/Paris"})
    assert answer.status_code == 302
    team.refresh_from_db()
    assert (team.name, team.time_zone, team.slug) == ("Acme West", "Europe/Paris", "acme")
    assert verbs(team)[-1] == "team.changed"


def test_a_team_s_name_turns_nothing_round(browse, team, alice):
    name = "\u202eAcme\r\nBcc: x@y.test \u2067West"
    browse(alice).post(reverse("team_settings"), {"name": name, "time_zone": "UTC"})
    team.refresh_from_db()
    assert team.name == "Acme Bcc: x@y.test West"
    answer = browse(alice).post(reverse("team_settings"), {"name": "\u200b\u202e", "time_zone": "UTC"})
    assert (answer.status_code, Team.objects.get(pk=team.pk).name) == (422, team.name)  # nothing of it is seen


@pytest.mark.parametrize("wrong", [{"name": " "}, {"time_zone": "Mars/Olympus"}, {"name": "x" * 121}])
def test_bad_settings_are_shown_and_not_saved(browse, team, alice, wrong):
    form = {"name": "Other", "time_zone": "UTC", **wrong}
    answer = browse(alice).post(reverse("team_settings"), form)
    assert answer.status_code == 200
    assert "field-error" in answer.content.decode()
    team.refresh_from_db()
    assert team.name == "Acme"


def test_another_team_is_founded_and_worked_in(browse, team, alice):
    client = browse(alice)
    client.post(reverse("new_team"), {"name": "Second", "time_zone": "UTC"})
    assert client.get(reverse("team")).context["team"].slug == "second"
    assert client.get(reverse("account")).content.decode().count("Switch to it") == 1


def test_a_person_without_a_team_can_found_one_and_see_their_account(db, browse):
    client = browse(User.objects.create_user("loner@acme.test", factories.PASSWORD))
    assert reverse("new_team") in client.get(reverse("overview")).content.decode()
    assert client.get(reverse("account")).status_code == 200
    assert client.get(reverse("new_team")).status_code == 200
    client.post(reverse("new_team"), {"name": "Mine", "time_zone": "UTC"})
    assert client.get(reverse("overview")).status_code == 200


def test_a_person_changes_name_time_and_colours(browse, alice):
    client = browse(alice)
    client.post(reverse("account"), {"name": "Alice  Archer", "time_zone": "Asia/Tokyo", "theme": "dark"})
    alice.refresh_from_db()
    assert (str(alice), alice.time_zone, alice.theme) == ("Alice Archer", "Asia/Tokyo", "dark")
    assert 'data-theme="dark"' in client.get(reverse("account")).content.decode()


# --- Deleting a team ----------------------------------------------------------------------------------


def ask(browse, team: Team, alice: User) -> TeamDeletion:
    browse(alice).post(reverse("delete_team"), {"confirmation": team.slug})
    return TeamDeletion.objects.of(team).get()


def test_a_team_is_not_deleted_by_a_slip(browse, team, alice):
    answer = browse(alice).post(reverse("delete_team"), {"confirmation": "Acme Inc"})
    assert answer.status_code == 422
    assert "Type acme to delete this team" in answer.content.decode()
    assert Team.objects.get(pk=team.pk).suspended_at is None


def test_a_team_is_suspended_at_once(browse, team, alice, bob, api):
    bobs = browse(bob)
    job = ask(browse, team, alice)
    assert bobs.get(reverse("memories")).status_code == 403
    assert api.get("/api/v1/memories").status_code == 401
    assert job.state == DeletionState.QUEUED
    assert OrmQ.objects.count() == 1


def test_everything_of_the_team_goes_and_nothing_of_another(browse, team, alice, agent, other_agent):
    factories.memory(agent)
    factories.trace(agent)
    theirs = factories.memory(other_agent)
    enter_team(team)
    job = ask(browse, team, alice)
    assert tasks.delete_team(str(team.pk), str(job.pk)) == DeletionState.DONE
    assert not Team.objects.filter(pk=team.pk).exists()
    enter_team(team)
    for model in deletion.tables():
        assert not model._default_manager.filter(team_id=team.pk).exists(), model
    enter_team(other_agent.team)
    assert Memory.objects.of(other_agent.team).filter(pk=theirs.pk).exists()
    job.refresh_from_db()
    assert job.rows_deleted == job.rows_total > 10
    assert verbs(team)[-2:] == ["team.deletion_requested", "team.deleted"]
    assert tasks.delete_team(str(team.pk), str(job.pk)) == "gone"


def test_a_long_deletion_goes_on_in_turns_and_shows_how_far_it_is(browse, team, alice, agent):
    for n in range(6):
        factories.memory(agent, f"Fact number {n} about the {n}th service.")
    client = browse(alice)
    answer = client.post(reverse("delete_team"), {"confirmation": "acme"})
    job = TeamDeletion.objects.of(team).get()
    page = client.get(answer.url).content.decode()
    assert "Waiting for a worker" in page
    seen = []
    while (state := deletion.run(team, job.pk, turn=0, batch=2)) != DeletionState.DONE:
        assert state == DeletionState.QUEUED
        job.refresh_from_db()
        seen.append(job.rows_deleted)
        assert len(seen) < 200
    assert seen == sorted(seen)
    assert len(seen) > 3
    assert "Acme is deleted" in client.get(answer.url).content.decode()


def test_two_workers_do_not_delete_at_once(browse, team, alice):
    job = ask(browse, team, alice)
    assert deletion._claim(team, job.pk)
    assert deletion.run(team, job.pk) == DeletionState.RUNNING
    assert Team.objects.filter(pk=team.pk).exists()


def test_a_lost_deletion_is_woken(browse, team, alice):
    job = ask(browse, team, alice)
    OrmQ.objects.all().delete()
    assert tasks.resume_deletions() == "0 woken", "it was asked for a moment ago"
    with team_transaction(team):
        long_ago = job.created_at - deletion.WAKE_UP_LOST_AFTER * 2
        TeamDeletion.objects.of(team).update(created_at=long_ago)
    assert tasks.resume_deletions() == "1 woken"
    assert OrmQ.objects.count() == 1


def test_the_deletion_is_shown_to_who_asked_for_it_only(browse, team, alice, mallory, bob):
    job = ask(browse, team, alice)
    address = reverse("team_deletion", args=[team.pk, job.pk])
    assert browse(alice).get(address).status_code == 200
    assert browse(bob).get(address).status_code == 404
    assert browse(mallory).get(address).status_code == 404


def test_every_table_of_a_team_is_emptied_children_first():
    order = deletion.tables()
    place = {model: number for number, model in enumerate(order)}
    outliving = {AuditEvent, TeamDeletion}
    of_teams = {m for m in apps.get_models() if any(f.related_model is Team for f in m._meta.fields)}
    assert set(order) == of_teams - outliving
    for model in order:
        for field in model._meta.fields:
            if field.is_relation and field.related_model in place and field.related_model is not model:
                assert place[model] < place[field.related_model], f"{model} points at {field.related_model}"
