"""Invitations: signed, expiring, single-use, for one address; by mail and for new people too."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from hindsight_site.accounts import invitations, permissions
from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.enums import TeamRole
from hindsight_site.accounts.models import AuditEvent, Invitation, Membership, Team, User
from hindsight_site.accounts.tenancy import enter_team
from hindsight_site.refusals import Conflict, NotFound
from tests import factories

NEW = "nina@new.test"
OWNERS = permissions.ROLES_IN_GIFT["owner"]


def invite(team: Team, by: User, email: str = NEW, role: str = "reviewer") -> Invitation:
    enter_team(team)
    return invitations.invite(team=team, by=person(by), email=email, role=role, allowed=OWNERS, inviter=by)


def mailed_path(number: int = -1) -> str:
    found = re.search(r"https?://[^/]+(/invitations/\S+)", mail.outbox[number].body)
    assert found
    return found[1]


def is_member(team: Team, email: str) -> str:
    enter_team(team)
    return Membership.objects.of(team).filter(user__email=email).values_list("role", flat=True).first() or "none"


@pytest.fixture
def nina(db) -> User:
    return User.objects.create_user(NEW, factories.PASSWORD)


# --- Inviting -----------------------------------------------------------------------------------------


def test_inviting_sends_a_mail_and_shows_on_the_page(browse, team, alice):
    client = browse(alice)
    answer = client.post(reverse("invite"), {"email": " Nina@New.test", "role": "viewer"})
    assert answer.status_code == 302
    assert mail.outbox[0].to == [NEW]
    assert "invites you to Acme" in mail.outbox[0].subject
    assert "as viewer" in mail.outbox[0].body
    page = client.get(reverse("team")).content.decode()
    assert NEW in page
    assert mailed_path() not in page, "the link is for the invited person's mailbox alone"


@pytest.mark.parametrize(
    ("email", "role", "status", "said"),
    [
        ("nonsense", "viewer", 422, "not an e-mail address"),
        (NEW, "king", 422, "must be one of"),
        ("ALICE@acme.test", "viewer", 409, "in the team already"),
    ],
)
def test_what_cannot_be_invited(browse, team, alice, email, role, status, said):
    answer = browse(alice).post(reverse("invite"), {"email": email, "role": role})
    assert answer.status_code == status
    assert said in answer.content.decode()
    assert not mail.outbox


def test_nobody_is_invited_twice_at_once(team, alice):
    invite(team, alice)
    with pytest.raises(Conflict, match="invited already"):
        invite(team, alice)
    assert len(mail.outbox) == 1


def test_an_admin_cannot_invite_an_owner(browse, team, alice):
    admin = factories.member(team, "dora@acme.test", "admin")
    answer = browse(admin).post(reverse("invite"), {"email": NEW, "role": "owner"})
    assert answer.status_code == 403
    assert not mail.outbox


@pytest.mark.parametrize("role", TeamRole.values)
@pytest.mark.parametrize("name", ["resend_invitation", "revoke_invitation"])
def test_who_may_send_again_and_take_back(browse, team, alice, role, name):
    invitation = invite(team, alice)
    Invitation.objects.of(team).update(sent_at=timezone.now() - timedelta(hours=1))
    actor = alice if role == "owner" else factories.member(team, "actor@acme.test", role)
    answer = browse(actor).post(reverse(name, args=[invitation.pk]))
    assert answer.status_code == (302 if role in {"owner", "admin"} else 403)


@pytest.mark.parametrize("name", ["resend_invitation", "revoke_invitation"])
def test_another_teams_invitation_is_not_found(browse, team, alice, other_team, mallory, name):
    theirs = invite(other_team, mallory)
    assert browse(alice).post(reverse(name, args=[theirs.pk])).status_code == 404
    enter_team(other_team)
    theirs.refresh_from_db()
    assert (theirs.revoked_at, theirs.sends) == (None, 1)


def test_a_mail_server_that_fails_undoes_the_invitation(browse, team, alice, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    answer = browse(alice).post(reverse("invite"), {"email": NEW, "role": "viewer"})
    assert answer.status_code == 503
    enter_team(team)
    assert not Invitation.objects.of(team).exists()


def test_a_name_cannot_add_headers_to_the_mail(team, alice):
    alice.first_name = "Eve\r\nBcc: everyone@new.test"
    invite(team, alice)
    assert mail.outbox[0].subject.splitlines() == [mail.outbox[0].subject]
    assert mail.outbox[0].recipients() == [NEW]


# --- Accepting ----------------------------------------------------------------------------------------


def test_a_person_with_an_account_joins_and_lands_in_the_team(browse, team, alice, nina):
    invite(team, alice)
    client = browse(nina)
    assert "Join the team" in client.get(mailed_path()).content.decode()
    assert client.post(mailed_path()).url == reverse("overview")
    assert client.get(reverse("team")).context["team"] == team
    assert is_member(team, NEW) == "reviewer"
    assert AuditEvent.objects.of(team).filter(verb="invitation.accepted", actor_label=NEW).count() == 1


def test_a_link_works_once(browse, team, alice, nina):
    invite(team, alice)
    path = mailed_path()
    assert browse(nina).post(path).status_code == 302
    enter_team(team)
    Membership.objects.of(team).filter(user=nina).delete()
    assert browse(nina).post(path).status_code == 404
    assert is_member(team, NEW) == "none"


def test_somebody_else_cannot_use_the_link(browse, team, alice, mallory):
    invite(team, alice)
    client = browse(mallory)
    page = client.get(mailed_path()).content.decode()
    assert "The invitation is for nina@new.test" in page
    assert "Join the team" not in page
    assert client.post(mailed_path()).status_code == 403
    assert is_member(team, mallory.email) == "none"


def test_opening_a_link_signed_out_leads_to_the_log_in_and_back(team, alice, nina):
    invite(team, alice)
    client = Client()
    page = client.get(mailed_path()).content.decode()
    login = re.search(r'href="([^"]*/login/\?next=[^"]+)"', page)
    assert login
    form = {"username": NEW, "password": factories.PASSWORD, "next": mailed_path()}
    answer = client.post(reverse("login"), form)
    assert answer.url == mailed_path()
    assert client.post(answer.url).status_code == 302
    assert is_member(team, NEW) == "reviewer"


def test_a_new_person_signs_up_into_the_team_with_a_confirmed_address(team, alice, settings):
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.SIGN_UP_OPEN = False
    invite(team, alice)
    client = Client()
    assert reverse("account_signup") in client.get(mailed_path()).content.decode()
    page = client.get(reverse("account_signup")).content.decode()
    assert "Join Acme" in page
    assert "Name of your team" not in page
    form = {"email": NEW, "password1": factories.PASSWORD, "name": "Nina"}
    assert client.post(reverse("account_signup"), form).url == reverse("overview")
    assert client.get(reverse("overview")).status_code == 200
    assert is_member(team, NEW) == "reviewer"
    assert Team.objects.count() == 1, "nobody who was invited gets a team of their own"
    assert User.objects.get(email=NEW).emailaddress_set.get().verified


def test_a_new_person_cannot_sign_up_into_the_team_with_another_address(team, alice):
    invite(team, alice)
    client = Client()
    client.get(mailed_path())
    form = {"email": "other@new.test", "password1": factories.PASSWORD, "name": ""}
    answer = client.post(reverse("account_signup"), form)
    assert "The invitation is for nina@new.test" in answer.content.decode()
    assert not User.objects.filter(email="other@new.test").exists()


def test_an_invitation_that_was_taken_back_does_not_open_a_closed_sign_up(team, alice, settings):
    settings.SIGN_UP_OPEN = False
    invitation = invite(team, alice)
    client = Client()
    client.get(mailed_path())
    enter_team(team)
    invitations.revoke(team=team, by=SYSTEM, invitation=invitation)
    form = {"email": NEW, "password1": factories.PASSWORD, "name": "", "team": "Mine"}
    assert "by invitation" in client.post(reverse("account_signup"), form).content.decode()
    assert not User.objects.filter(email=NEW).exists()


# --- Links that do not hold ---------------------------------------------------------------------------


def test_sending_again_replaces_the_link(browse, team, alice):
    invitation = invite(team, alice)
    client = browse(alice)
    address = reverse("resend_invitation", args=[invitation.pk])
    assert client.post(address).status_code == 409, "a minute must pass"
    enter_team(team)
    Invitation.objects.of(team).update(
        sent_at=timezone.now() - timedelta(days=8), expires_at=timezone.now() - timedelta(days=1)
    )
    assert client.post(address).status_code == 302
    assert len(mail.outbox) == 2
    assert Client().get(mailed_path(0)).status_code == 404
    assert Client().get(mailed_path(1)).status_code == 200


def test_taking_back_ends_it_and_frees_the_address(browse, team, alice):
    invitation = invite(team, alice)
    client = browse(alice)
    for _ in range(2):
        assert client.post(reverse("revoke_invitation", args=[invitation.pk])).status_code == 302
    assert Client().get(mailed_path()).status_code == 404
    enter_team(team)
    assert AuditEvent.objects.of(team).filter(verb="invitation.revoked").count() == 1
    invite(team, alice)


def test_an_expired_link_says_so(team, alice):
    invite(team, alice)
    Invitation.objects.of(team).update(expires_at=timezone.now() - timedelta(seconds=1))
    answer = Client().get(mailed_path())
    assert answer.status_code == 404
    assert "does not work any more" in answer.content.decode()


def test_the_signature_itself_expires(team, alice, monkeypatch):
    invite(team, alice)
    token = mailed_path().split("/")[2]
    Invitation.objects.of(team).update(expires_at=timezone.now() + timedelta(days=99))
    monkeypatch.setattr(invitations, "LIFETIME", timedelta(seconds=-1))
    with pytest.raises(NotFound):
        invitations.find(token)


@pytest.mark.parametrize(
    "change", [lambda t: t[:-2] + ("A" if t[-2] != "A" else "B") + t[-1], lambda t: "x" + t, lambda t: "x"]
)
def test_a_forged_link_opens_nothing(team, alice, change):
    invite(team, alice)
    token = mailed_path().split("/")[2]
    assert Client().get(reverse("invitation", args=[change(token)])).status_code == 404


def test_a_link_signed_for_something_else_opens_nothing(team, alice):
    from django.core import signing

    invitation = invite(team, alice)
    token = signing.dumps([str(team.pk), str(invitation.pk), 1], salt="another")
    assert Client().get(reverse("invitation", args=[token])).status_code == 404


def test_a_link_into_a_suspended_team_opens_nothing(team, alice):
    invite(team, alice)
    Team.objects.filter(pk=team.pk).update(suspended_at=timezone.now())
    assert Client().get(mailed_path()).status_code == 404


def test_two_at_once_join_once(team, alice, nina):
    first = invite(team, alice)
    second = Invitation.objects.of(team).get(pk=first.pk)
    invitations.accept(team=team, by=SYSTEM, invitation=first, person=nina)
    with pytest.raises(Conflict):
        invitations.accept(team=team, by=SYSTEM, invitation=second, person=nina)


def test_pages_with_invitations_ask_few_questions(browse, team, alice, django_assert_max_num_queries):
    for number in range(12):
        invite(team, alice, email=f"guest{number}@new.test")
    client = browse(alice)
    with django_assert_max_num_queries(15):
        assert client.get(reverse("team")).status_code == 200
    with django_assert_max_num_queries(15):
        assert Client().get(mailed_path()).status_code == 200
