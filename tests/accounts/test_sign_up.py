"""Signing up, confirming an address, resetting a password, and what slows down guessing."""

from __future__ import annotations

import re

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.urls import reverse

from hindsight_site.accounts.models import AuditEvent, Membership, Team, User
from hindsight_site.accounts.tenancy import enter_team
from tests import factories

FORM = {"email": "Nina@new.test", "password1": factories.PASSWORD, "name": "Nina  Novak", "team": "Nova"}
ENTRANCES = ["login", "account_signup", "account_reset_password", "account_reset_password_done"]


def link_in(message: mail.EmailMessage) -> str:
    found = re.search(r"https?://[^/\s]+(/\S+)", message.body)
    assert found
    return found[1]


@pytest.mark.parametrize("name", [*ENTRANCES, "account_email_verification_sent"])
def test_pages_have_one_heading_and_no_inline_style_or_script(db, name):
    page = Client().get(reverse(name)).content.decode()
    assert not re.search(r"<[^>]+\s(style|on\w+)=", page)
    # JSON is data and not run: the CSP does not look at it.
    assert not re.search(r'<script(?![^>]*(\ssrc=|type="application/json"))', page)
    assert page.count("<h1") == 1


@pytest.mark.parametrize("name", ENTRANCES)
def test_pages_may_load_from_here_alone(db, name):
    policy = Client().get(reverse(name)).headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy + ";"
    assert "unsafe" not in policy


# --- Signing up ---------------------------------------------------------------------------------------


def test_signing_up_makes_a_person_with_a_team(db):
    client = Client()
    assert client.post(reverse("account_signup"), FORM).url == reverse("overview")
    user = User.objects.get()
    assert (user.email, str(user), user.check_password(factories.PASSWORD)) == ("nina@new.test", "Nina Novak", True)
    team = Team.objects.get()
    enter_team(team)
    assert (team.name, team.slug) == ("Nova", "nova")
    assert Membership.objects.of(team).get(user=user).role == "owner"
    assert AuditEvent.objects.of(team).get(verb="team.created").actor_id == str(user.pk)
    assert client.get(reverse("overview")).status_code == 200


@pytest.mark.parametrize(
    "wrong", [{"email": "nonsense"}, {"password1": "short"}, {"password1": "password12"}, {"team": ""}, {"team": "  "}]
)
def test_a_wrong_field_makes_nobody(db, wrong):
    answer = Client().post(reverse("account_signup"), {**FORM, **wrong})
    assert answer.status_code == 200
    assert "field-error" in answer.content.decode()
    assert (User.objects.count(), Team.objects.count()) == (0, 0)


def test_an_address_that_is_taken_makes_nobody(alice):
    teams = Team.objects.count()
    Client().post(reverse("account_signup"), {**FORM, "email": "ALICE@acme.test"})
    assert (User.objects.count(), Team.objects.count()) == (1, teams)


def test_a_taken_address_is_not_told_to_strangers_where_mails_must_be_confirmed(alice, settings):
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    taken = Client().post(reverse("account_signup"), {**FORM, "email": "alice@acme.test"})
    free = Client().post(reverse("account_signup"), FORM)
    assert (taken.status_code, taken.url) == (free.status_code, free.url)
    assert mail.outbox[0].to == ["alice@acme.test"]
    assert "already exists" in mail.outbox[0].body


def test_sign_up_can_be_closed(db, settings):
    settings.SIGN_UP_OPEN = False
    assert "by invitation" in Client().get(reverse("account_signup")).content.decode()
    Client().post(reverse("account_signup"), FORM)
    assert not User.objects.exists()


# --- Confirming the address ---------------------------------------------------------------------------


def test_where_it_is_optional_one_works_before_confirming(db):
    client = Client()
    client.post(reverse("account_signup"), FORM)
    assert client.get(reverse("overview")).status_code == 200
    assert len(mail.outbox) == 1
    page = client.get(link_in(mail.outbox[0]))
    assert "Confirm" in page.content.decode()
    client.post(link_in(mail.outbox[0]))
    assert EmailAddress.objects.get().verified


def test_where_it_is_mandatory_one_does_not(db, settings):
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    client = Client()
    assert client.post(reverse("account_signup"), FORM).url == reverse("account_email_verification_sent")
    assert client.get(reverse("overview")).status_code == 302
    client.post(link_in(mail.outbox[0]))
    log_in = {"username": "nina@new.test", "password": factories.PASSWORD}
    assert Client().post(reverse("login"), log_in).url == reverse("overview")


def test_a_forged_confirmation_confirms_nothing(db):
    Client().post(reverse("account_signup"), FORM)
    forged = link_in(mail.outbox[0])[:-3] + "x/"
    Client().post(forged)
    assert not EmailAddress.objects.get().verified


# --- Changing address and password --------------------------------------------------------------------


def signed_in(user: User) -> Client:
    client = Client()
    form = {"username": user.email, "password": factories.PASSWORD}
    assert client.post(reverse("login"), form).status_code == 302
    client.post(reverse("account_reauthenticate"), {"password": factories.PASSWORD})
    return client


def test_a_new_address_counts_once_it_is_confirmed(alice):
    client = signed_in(alice)
    answer = client.post(reverse("account_email"), {"email": "alice@west.test", "action_add": ""})
    assert answer.status_code == 302
    alice.refresh_from_db()
    assert alice.email == "alice@acme.test"
    page = client.get(reverse("account_email")).content.decode()
    assert "Not confirmed yet" in page
    assert " style=" not in page
    confirming = next(message for message in mail.outbox if message.to == ["alice@west.test"])
    client.post(link_in(confirming))
    alice.refresh_from_db()
    assert alice.email == "alice@west.test"
    assert [address.email for address in alice.emailaddress_set.all()] == ["alice@west.test"]
    assert signed_in(alice).get(reverse("overview")).status_code == 200


def test_an_address_mistyped_at_sign_up_can_be_changed(db):
    client = Client()
    client.post(reverse("account_signup"), FORM)
    client.post(reverse("account_reauthenticate"), {"password": factories.PASSWORD})
    client.post(reverse("account_email"), {"email": "nina@right.test", "action_add": ""})
    nina = User.objects.get()
    assert nina.email == "nina@new.test", "until the new one is confirmed, one logs in with it"
    client.post(link_in(next(message for message in mail.outbox if message.to == ["nina@right.test"])))
    nina.refresh_from_db()
    assert nina.email == "nina@right.test"


def test_changing_ones_mind_keeps_the_present_address(alice):
    client = signed_in(alice)
    for email in ("alice@west.test", "alice@east.test"):
        client.post(reverse("account_email"), {"email": email, "action_add": ""})
    client.post(reverse("account_email"), {"email": "alice@east.test", "action_remove": ""})
    alice.refresh_from_db()
    assert alice.email == "alice@acme.test"
    assert [address.email for address in alice.emailaddress_set.all()] == ["alice@acme.test"]


def test_the_password_is_changed_with_the_former_one(alice):
    client = signed_in(alice)
    form = {"oldpassword": "wrong", "password1": "another battery staple", "password2": "another battery staple"}
    assert client.post(reverse("account_change_password"), form).status_code == 200
    form["oldpassword"] = factories.PASSWORD
    assert client.post(reverse("account_change_password"), form).status_code == 302
    alice.refresh_from_db()
    assert alice.check_password("another battery staple")
    assert client.get(reverse("overview")).status_code == 200, "one stays logged in here"


def test_a_forgotten_password_is_reset_by_mail_once(alice):
    client = Client()
    answer = client.post(reverse("account_reset_password"), {"email": "alice@acme.test"})
    assert answer.url == reverse("account_reset_password_done")
    link = link_in(mail.outbox[0])
    shown = client.get(link)
    form = {"password1": "another battery staple", "password2": "another battery staple"}
    assert client.get(shown.url).status_code == 200
    assert client.post(shown.url, form).status_code == 302
    alice.refresh_from_db()
    assert alice.check_password("another battery staple")
    used = Client().get(link, follow=True).content.decode()
    assert "This link no longer works" in used


def test_a_reset_does_not_tell_who_has_an_account(alice):
    answers = [
        Client().post(reverse("account_reset_password"), {"email": email})
        for email in ("alice@acme.test", "nobody@acme.test")
    ]
    assert len({(answer.status_code, answer.url) for answer in answers}) == 1
    assert mail.outbox[1].to == ["nobody@acme.test"]
    assert "do not have any record" in mail.outbox[1].body


# --- Logging in ---------------------------------------------------------------------------------------


def test_guessing_a_password_is_slowed_down_and_for_that_account_alone(alice, mallory):
    client = Client()
    for _ in range(5):
        page = client.post(reverse("login"), {"username": alice.email, "password": "wrong"}).content.decode()
        assert "do not belong together" in page
    answer = client.post(reverse("login"), {"username": alice.email, "password": factories.PASSWORD})
    assert "Too many failed attempts" in answer.content.decode()
    assert Client().post(reverse("login"), {"username": mallory.email, "password": factories.PASSWORD}).url == reverse(
        "overview"
    )


def test_the_count_is_shared_between_processes(alice):
    Client().post(reverse("login"), {"username": alice.email, "password": "wrong"})
    assert type(cache._connections.settings and cache).__name__ != "LocMemCache"
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM throttle WHERE cache_key LIKE '%login_failed%'")
        assert cursor.fetchone()[0] >= 2


def test_many_log_ins_from_one_place_are_answered_with_a_page(db):
    answers = [Client().get(reverse("account_signup")).status_code for _ in range(3)]
    assert answers == [200] * 3
    last = None
    for _ in range(25):
        last = Client().post(reverse("account_signup"), {**FORM, "email": "nonsense"})
    assert last is not None
    assert last.status_code == 429
    assert "Too many attempts" in last.content.decode()


def test_staff_log_in_by_the_same_door(alice):
    alice.is_staff = alice.is_superuser = True
    alice.save()
    answer = Client().get("/admin/", follow=True)
    assert answer.redirect_chain[-1][0].startswith(reverse("login"))
    assert signed_in(alice).get("/admin/").status_code == 200
