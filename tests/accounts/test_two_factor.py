"""Second factors through the real pages: an authenticator app, recovery codes, passkeys."""

from __future__ import annotations

import json
import re
import time

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth
from django.test import Client
from django.urls import reverse

from hindsight_site.accounts.models import User
from tests import factories

MANAGE = [
    "mfa_index", "mfa_activate_totp", "mfa_add_webauthn", "account_email", "account_change_password",
]  # fmt: skip
UNKNOWN_PASSKEY = {
    "id": "AAAA",
    "rawId": "AAAA",
    "type": "public-key",
    "response": {"clientDataJSON": "e30", "authenticatorData": "AAAA", "signature": "AAAA", "userHandle": "MQ"},
}


def log_in(user: User) -> Client:
    client = Client()
    client.post(reverse("login"), {"username": user.email, "password": factories.PASSWORD})
    return client


def sure(user: User) -> Client:
    """Signed in, and the password confirmed a moment ago."""
    client = log_in(user)
    answer = client.post(reverse("account_reauthenticate"), {"password": factories.PASSWORD})
    assert answer.status_code == 302
    return client


def code_of(secret: str) -> str:
    counter = int(time.time()) // 30
    return auth.format_hotp_value(auth.hotp_value(secret, counter))


def activate(client: Client) -> str:
    """Set up an authenticator app and return its secret."""
    page = client.get(reverse("mfa_activate_totp")).content.decode()
    found = re.search(r"<code>([A-Z2-7]{16,})</code>", page)
    assert found, "the secret is shown, to be typed where no camera is"
    answer = client.post(reverse("mfa_activate_totp"), {"code": code_of(found[1])})
    assert answer.status_code == 302
    return found[1]


@pytest.mark.parametrize("name", MANAGE)
def test_pages_have_one_heading_and_no_inline_style_or_script(alice, name):
    page = sure(alice).get(reverse(name)).content.decode()
    assert not re.search(r"<[^>]+\s(style|on\w+)=", page)
    assert not re.search(r'<script(?![^>]*(\ssrc=|type="application/json"))', page)
    assert page.count("<h1") == 1
    assert 'class="frame"' in page


@pytest.mark.parametrize("name", MANAGE)
def test_pages_ask_few_questions(alice, name, django_assert_max_num_queries):
    client = sure(alice)
    # The two pages that draw a secret write it into the session, which alone costs four.
    with django_assert_max_num_queries(19 if name in {"mfa_activate_totp", "mfa_add_webauthn"} else 15):
        assert client.get(reverse(name)).status_code == 200


@pytest.mark.parametrize("name", [*MANAGE, "mfa_list_webauthn", "mfa_generate_recovery_codes"])
def test_strangers_are_asked_to_log_in(db, name):
    assert Client().get(reverse(name)).url.startswith(reverse("login"))


def test_an_old_session_must_confirm_the_password_first(browse, alice):
    client = browse(alice)  # signed in without a recent password
    answer = client.get(reverse("mfa_activate_totp"))
    assert answer.url.startswith(reverse("account_reauthenticate"))
    page = client.get(answer.url)
    assert page.status_code == 200
    back = client.post(answer.url, {"password": factories.PASSWORD})
    assert back.url == reverse("mfa_activate_totp")
    assert client.get(back.url).status_code == 200


def test_logging_in_asks_for_the_code_once_it_is_set_up(alice):
    secret = activate(sure(alice))
    client = Client()
    form = {"username": alice.email, "password": factories.PASSWORD, "next": reverse("traces")}
    answer = client.post(reverse("login"), form)
    assert answer.url.startswith(reverse("mfa_authenticate"))
    assert client.get(reverse("overview")).status_code == 302, "the password alone opens nothing"
    assert client.get(answer.url).status_code == 200
    wrong = client.post(answer.url, {"code": "000000"})
    assert "Incorrect code" in wrong.content.decode()
    Authenticator.objects.filter(type="totp").update(last_used_at=None)
    client.post(answer.url, {"code": code_of(secret)})
    assert client.get(reverse("overview")).status_code == 200


def test_guessing_the_code_is_slowed_down(alice):
    secret = activate(sure(alice))
    client = log_in(alice)
    for _ in range(5):
        client.post(reverse("mfa_authenticate"), {"code": "000000"})
    client.post(reverse("mfa_authenticate"), {"code": code_of(secret)})
    assert client.get(reverse("overview")).status_code == 302


def test_the_secret_is_kept_encrypted(alice):
    secret = activate(sure(alice))
    stored = json.dumps(list(Authenticator.objects.values_list("data", flat=True)))
    assert secret not in stored


def test_a_recovery_code_works_once(alice):
    client = sure(alice)
    activate(client)
    page = client.get(reverse("mfa_view_recovery_codes")).content.decode()
    codes = re.findall(r"\b\d{8}\b", page)
    assert len(codes) == 10
    assert " style=" not in page
    first = log_in(alice)
    first.post(reverse("mfa_authenticate"), {"code": codes[0]})
    assert first.get(reverse("overview")).status_code == 200
    second = log_in(alice)
    second.post(reverse("mfa_authenticate"), {"code": codes[0]})
    assert second.get(reverse("overview")).status_code == 302


def test_it_can_be_turned_off_again(alice):
    client = sure(alice)
    activate(client)
    assert "Turn off" in client.get(reverse("mfa_index")).content.decode()
    client.post(reverse("mfa_deactivate_totp"))
    assert not Authenticator.objects.filter(type="totp").exists()
    assert log_in(alice).get(reverse("overview")).status_code == 200


def test_staff_pages_are_behind_the_second_factor_too(alice):
    alice.is_staff = alice.is_superuser = True
    alice.save()
    activate(sure(alice))
    assert log_in(alice).get("/admin/").status_code == 302


def test_passkey_pages_load_their_scripts_from_here(alice):
    client = sure(alice)
    page = client.get(reverse("mfa_add_webauthn")).content.decode()
    for script in re.findall(r'<script[^>]*src="([^"]+)"', page):
        assert script.startswith("/static/")
    assert "mfa/js/webauthn.js" in page
    options = Client().get(reverse("mfa_login_webauthn"), headers={"Accept": "application/json"}).json()
    assert options["request_options"]["publicKey"]["challenge"]


def test_a_passkey_that_is_none_logs_nobody_in(alice):
    client = Client()
    client.get(reverse("mfa_login_webauthn"), headers={"Accept": "application/json"})
    client.post(reverse("mfa_login_webauthn"), {"credential": json.dumps(UNKNOWN_PASSKEY)})
    assert client.get(reverse("overview")).status_code == 302
