"""What an intruder tries at the doors for people, and does not get: written as attempts."""

from __future__ import annotations

import re
import statistics
import time
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core import mail
from django.test import Client
from django.urls import get_resolver, reverse

from hindsight_site.accounts.models import User
from tests import factories

pytestmark = pytest.mark.django_db
NEW_PASSWORD = "another long one"
RARE = "a long and rare one"


@pytest.fixture(autouse=True)
def _no_log_in_limits(settings) -> None:
    """The limits have tests of their own; here the question is what is behind them."""
    settings.ACCOUNT_RATE_LIMITS = settings.MFA_RATE_LIMITS = False


def log_in(user: User, password: str = factories.PASSWORD, **more: str) -> Client:
    client = Client()
    client.post(reverse("login"), {"username": user.email, "password": password, **more})
    return client


def is_in(client: Client) -> bool:
    return client.get(reverse("overview")).status_code == 200


def sure(user: User) -> Client:
    client = log_in(user)
    client.post(reverse("account_reauthenticate"), {"password": factories.PASSWORD})
    return client


def link_in(message: mail.EmailMessage) -> str:
    found = re.search(r"https?://[^/\s]+(/\S+)", message.body)
    assert found, message.body
    return found[1]


def shown(answer: Any, *known: str) -> str:
    """What an answer says, without what differs each time or was sent along."""
    text = re.sub(r'name="csrfmiddlewaretoken" value="[^"]+"', "", answer.content.decode())
    for word in known:
        text = text.replace(word, "…")
    return f"{answer.status_code} {answer.get('Location', '')} {text}"


# --- Who has an account? ------------------------------------------------------------------------------


def test_a_log_in_does_not_tell(alice) -> None:
    answers = []
    for email in (alice.email, "nobody@acme.test"):
        form = {"username": email, "password": "wrong"}
        answers.append(shown(Client().post(reverse("login"), form), email))
    assert answers[0] == answers[1]


def test_a_log_in_takes_as_long_for_strangers(alice, settings) -> None:
    settings.PASSWORD_HASHERS = ["tests.accounts.test_attacks.SlowHasher"]
    alice.set_password(factories.PASSWORD)
    alice.save()

    def seconds(email: str) -> float:
        began = time.perf_counter()
        Client().post(reverse("login"), {"username": email, "password": "wrong"})
        return time.perf_counter() - began

    known = statistics.median(seconds(alice.email) for _ in range(3))
    strange = statistics.median(seconds(f"nobody{n}@acme.test") for n in range(3))
    assert strange > SlowHasher.SECONDS, "no password is hashed for a stranger"
    assert known > SlowHasher.SECONDS


def test_a_reset_does_not_tell(alice) -> None:
    answers = []
    for email in (alice.email, "nobody@acme.test"):
        answers.append(shown(Client().post(reverse("account_reset_password"), {"email": email}, follow=True), email))
    assert answers[0] == answers[1]
    assert len(mail.outbox) == 2, "both get a mail, so that time tells nothing either"


def test_signing_up_does_not_tell_where_addresses_are_confirmed_first(alice, settings) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    answers = []
    for email in (alice.email, "nobody@acme.test"):
        form = {"email": email, "password1": RARE, "name": "X", "team": "X"}
        answers.append(shown(Client().post(reverse("account_signup"), form, follow=True), email))
    assert answers[0] == answers[1]


def test_changing_to_an_address_does_not_tell_whose_it_is(alice, mallory) -> None:
    answers = []
    for email in (alice.email, "nobody@acme.test"):
        client = sure(mallory)
        form = {"email": email, "action_add": ""}
        answers.append(shown(client.post(reverse("account_email"), form, follow=True), email))
        EmailAddress.objects.filter(user=mallory, verified=False).delete()
    assert answers[0] == answers[1]
    mallory.refresh_from_db()
    assert mallory.email == "mallory@rival.test"


# --- Being sent elsewhere -----------------------------------------------------------------------------

ELSEWHERE = [
    "https://evil.example/", "//evil.example/", "/\\evil.example", "\\\\evil.example", "///evil.example",
    "http:///evil.example", "javascript:alert(1)", "https:evil.example", " //evil.example", "\t//evil.example",
    "/\t/evil.example", "http://testserver@evil.example/", "http://testserver.evil.example/", "data:text/html,x",
]  # fmt: skip


def leads_away(location: str) -> bool:
    """As a browser reads it: controls and blanks around it go, backslashes are slashes."""
    read = re.sub(r"[\x00-\x20]", "", location).replace("\\", "/")
    return not (read.startswith("/") and not read.startswith("//")) and not read.startswith("http://testserver/")


@pytest.mark.parametrize("target", ELSEWHERE)
def test_next_leads_nowhere_else(alice, browse, target) -> None:
    password = {"password": factories.PASSWORD}
    tries = {
        "log in": Client().post(reverse("login"), {"username": alice.email, **password, "next": target}),
        "log in, in the address": Client().post(
            reverse("login", query={"next": target}), {"username": alice.email, **password}
        ),
        "already in": browse(alice).get(reverse("login", query={"next": target})),
        "log out": browse(alice).post(reverse("logout"), {"next": target}),
        "sign up": Client().post(
            reverse("account_signup"),
            {"email": "eve@acme.test", "password1": RARE, "name": "E", "team": "E", "next": target},
        ),
        "confirm": browse(alice).post(reverse("account_reauthenticate"), {**password, "next": target}),
        "colours": browse(alice).post(reverse("set_theme"), {"theme": "dark", "next": target}),
        "new password": sure(alice).post(
            reverse("account_change_password"),
            {"oldpassword": factories.PASSWORD, "password1": NEW_PASSWORD, "next": target},
        ),
        "admin": browse(alice).get("/admin/login/", {"next": target}),
    }
    for name, answer in tries.items():
        assert answer.status_code in {200, 302, 403}, f"{name}: {answer.status_code}"
        assert not leads_away(answer.get("Location", "/")), f"{name}: {answer['Location']}"


# --- Sessions -----------------------------------------------------------------------------------------


def test_a_session_that_was_planted_is_worth_nothing_after_the_log_in(alice) -> None:
    planted = Client()
    planted.get(reverse("login"))
    session = planted.session
    session["planted"] = True
    session.save()
    key = planted.session.session_key
    victim = Client()
    victim.cookies["sessionid"] = key
    victim.post(reverse("login"), {"username": alice.email, "password": factories.PASSWORD})
    assert is_in(victim)
    assert victim.session.session_key != key
    assert not is_in(planted)


def test_a_session_does_not_carry_over_to_another_person(alice, mallory) -> None:
    client = log_in(alice)
    key = client.session.session_key
    client.post(reverse("logout"))
    client.post(reverse("login"), {"username": mallory.email, "password": factories.PASSWORD})
    assert client.session.session_key != key
    old = Client()
    old.cookies["sessionid"] = key
    assert not is_in(old)


def test_a_new_password_ends_all_other_sessions(alice) -> None:
    thief, own = log_in(alice), sure(alice)
    form = {"oldpassword": factories.PASSWORD, "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    assert own.post(reverse("account_change_password"), form).status_code == 302
    assert is_in(own)
    assert not is_in(thief)


def test_a_reset_ends_all_sessions(alice) -> None:
    thief = log_in(alice)
    reset(alice)
    assert not is_in(thief)


# --- Links of a reset ---------------------------------------------------------------------------------


def ask_for_reset(user: User) -> str:
    Client().post(reverse("account_reset_password"), {"email": user.email})
    return link_in(mail.outbox[-1])


def use(link: str, password: str = NEW_PASSWORD) -> Any:
    client = Client()
    page = client.get(link)
    target = page["Location"] if page.status_code == 302 else link
    return client.post(target, {"password1": password, "password2": password})


def reset(user: User) -> str:
    link = ask_for_reset(user)
    use(link)
    user.refresh_from_db()
    assert user.check_password(NEW_PASSWORD)
    return link


def changes_nothing(link: str, user: User) -> None:
    before = User.objects.get(pk=user.pk).password
    use(link, "the intruders own")
    assert User.objects.get(pk=user.pk).password == before


def test_a_link_works_once(alice) -> None:
    changes_nothing(reset(alice), alice)


def test_an_older_link_dies_with_a_newer_one_used(alice) -> None:
    older = ask_for_reset(alice)
    reset(alice)
    changes_nothing(older, alice)


def test_a_link_dies_with_the_password_and_with_a_log_in(alice) -> None:
    link = ask_for_reset(alice)
    log_in(alice)
    changes_nothing(link, alice)


def test_a_link_dies_when_the_address_was_changed(alice) -> None:
    """Somebody who reads the former mailbox must not get in by a mail that lies in it."""
    link = ask_for_reset(alice)
    client = sure(alice)
    change_address(client, "new@acme.test")
    changes_nothing(link, alice)


def test_a_link_is_of_one_person(alice, mallory) -> None:
    link = ask_for_reset(mallory)
    uid, key = re.search(r"/reset/(\w+)-(.+)/", link).groups()  # type: ignore[union-attr]
    other = re.search(r"/reset/(\w+)-", ask_for_reset(alice))
    assert other
    changes_nothing(f"/password/reset/{other[1]}-{key}/", alice)
    assert uid != other[1]


def test_the_secret_of_a_link_leaves_the_address_bar(alice) -> None:
    link = ask_for_reset(alice)
    page = Client().get(link)
    assert page.status_code == 302
    assert page["Location"].endswith("-set-password/")


# --- Links of a confirmation --------------------------------------------------------------------------


def change_address(client: Client, email: str) -> None:
    client.post(reverse("account_email"), {"email": email, "action_add": ""})
    confirm(link_in(next(m for m in reversed(mail.outbox) if email in m.to)))


def confirm(link: str) -> Any:
    client = Client()
    client.get(link)
    return client.post(link)


def test_the_link_of_an_address_that_was_given_up_confirms_nothing(alice) -> None:
    client = sure(alice)
    client.post(reverse("account_email"), {"email": "first@acme.test", "action_add": ""})
    first = link_in(mail.outbox[-1])
    client.post(reverse("account_email"), {"email": "second@acme.test", "action_add": ""})
    confirm(first)
    alice.refresh_from_db()
    assert alice.email == "alice@acme.test"
    assert not EmailAddress.objects.filter(email="first@acme.test").exists()


def test_the_former_address_opens_nothing_any_more(alice) -> None:
    change_address(sure(alice), "new@acme.test")
    alice.refresh_from_db()
    assert alice.email == "new@acme.test"
    former = Client()
    former.post(reverse("login"), {"username": "alice@acme.test", "password": factories.PASSWORD})
    assert not is_in(former)
    mail.outbox.clear()
    Client().post(reverse("account_reset_password"), {"email": "alice@acme.test"})
    assert "/password/reset/" not in "".join(m.body for m in mail.outbox if "reset/" in m.body and "-" in link_in(m))


def test_looking_at_a_link_confirms_nothing(alice) -> None:
    """Mail servers open links to look for viruses."""
    sure(alice).post(reverse("account_email"), {"email": "new@acme.test", "action_add": ""})
    Client().get(link_in(mail.outbox[-1]))
    alice.refresh_from_db()
    assert alice.email == "alice@acme.test"


def test_two_people_cannot_confirm_one_address(alice, mallory) -> None:
    links = []
    for person in (alice, mallory):
        sure(person).post(reverse("account_email"), {"email": "new@acme.test", "action_add": ""})
        links.append(link_in(mail.outbox[-1]))
    for link in links:
        assert confirm(link).status_code < 500
    assert EmailAddress.objects.filter(email="new@acme.test", verified=True).count() == 1
    assert User.objects.filter(email__iexact="new@acme.test").count() == 1


def test_changing_the_address_wants_the_password_first(alice, browse) -> None:
    answer = browse(alice).post(reverse("account_email"), {"email": "evil@evil.test", "action_add": ""})
    assert answer.status_code == 302
    assert answer["Location"].startswith(reverse("account_reauthenticate"))
    assert not EmailAddress.objects.filter(email="evil@evil.test").exists()


def test_no_second_factor_on_an_address_that_was_not_confirmed(alice) -> None:
    """Or one could sign up with somebody else's address, and lock its owner out after their reset."""
    EmailAddress.objects.filter(user=alice).update(verified=False)
    answer = sure(alice).get(reverse("mfa_activate_totp"))
    assert answer.status_code == 302


# --- Forms of another site ----------------------------------------------------------------------------

# No cookie opens these, so no other site can use one.
BY_TOKEN = ("api/v1/", "mails/off/", "oauth/token", "oauth/revoke", "oauth/register", "token", "mcp")


def addresses(patterns: Any, prefix: str = "") -> Any:
    for found in patterns:
        address = prefix + str(found.pattern)
        if hasattr(found, "url_patterns"):
            yield from addresses(found.url_patterns, address)
        else:
            yield address, found


def test_every_form_is_refused_without_its_token(alice) -> None:
    User.objects.filter(pk=alice.pk).update(is_staff=True, is_superuser=True)
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    fill = {"uuid": "01900000-0000-7000-8000-000000000000", "int": "1", "slug": "a", "str": "a"}
    tried = 0
    for address, _ in addresses(get_resolver().url_patterns):
        if address.startswith(BY_TOKEN) or "(?P" in address or "^" in address:
            continue
        path = "/" + re.sub(r"<(?:(\w+):)?\w+>", lambda match: fill.get(match[1] or "str", "1"), address)
        answer = client.post(path)
        assert answer.status_code in {403, 405}, f"{path}: {answer.status_code}"
        tried += 1
    assert tried > 80


def test_a_cookie_opens_nothing_for_programs(alice, browse) -> None:
    client = browse(alice)
    for path in ("/api/v1/me", "/api/v1/memories", "/api/v1/tokens"):
        assert client.get(path).status_code == 401, path
    assert client.post("/api/v1/auth/token", {}, "application/json").status_code == 401


def test_names_in_mails_and_pages_are_text(alice, browse) -> None:
    User.objects.filter(pk=alice.pk).update(first_name="<img src=x onerror=alert(1)>\r\nBcc: evil@evil.test")
    alice.refresh_from_db()
    client = browse(alice)
    client.post(reverse("invite"), {"email": "ivy@acme.test", "role": "viewer"})
    message = mail.outbox[-1]
    assert "\n" not in message.subject
    assert not message.bcc
    assert "<img" not in client.get(reverse("team")).content.decode()


class SlowHasher(MD5PasswordHasher):
    """A hash that takes its time, as real ones do."""

    SECONDS = 0.05

    def encode(self, password: str, salt: str) -> str:
        time.sleep(self.SECONDS)
        return super().encode(password, salt)
