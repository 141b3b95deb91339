"""Mails: their links lead to this site whatever a request says, and pages say where a mail really went."""

from __future__ import annotations

import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.test import Client
from django.urls import reverse

from hindsight_site.accounts import invitations
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.enums import TeamRole
from hindsight_site.accounts.models import Invitation, User
from hindsight_site.accounts.tenancy import team_transaction
from tests import factories

pytestmark = pytest.mark.django_db
CONSOLE = "django.core.mail.backends.console.EmailBackend"
EVIL = "evil.example"
SIGN_UP = {"email": "eve@acme.test", "password1": "a long and rare one", "name": "Eve", "team": "Eve's"}


# --- Whose address is in a mail -----------------------------------------------------------------------


@pytest.fixture
def lax(settings) -> None:
    """A site whose operator or proxy lets every Host through."""
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITE_URL = "https://memory.example.org"


def ask_for_mails(alice: User, browse: Any) -> None:
    headers = {"Host": EVIL, "X-Forwarded-Host": EVIL, "Forwarded": f"host={EVIL}"}
    stranger, signed_in = Client(headers=headers), browse(alice)
    stranger.post(reverse("account_reset_password"), {"email": alice.email})
    stranger.post(reverse("account_reset_password"), {"email": "nobody@acme.test"})
    stranger.post(reverse("account_signup"), SIGN_UP)
    signed_in.post(reverse("account_reauthenticate"), {"password": factories.PASSWORD}, headers=headers)
    signed_in.post(reverse("account_email"), {"email": "new@acme.test", "action_add": ""}, headers=headers)
    signed_in.post(reverse("invite"), {"email": "ivy@acme.test", "role": "viewer"}, headers=headers)


def test_links_of_mails_lead_here_whatever_the_host(lax, alice, browse) -> None:
    ask_for_mails(alice, browse)
    assert len(mail.outbox) >= 5
    for message in mail.outbox:
        text = f"{message.subject}\n{message.body}"
        assert EVIL not in text, text
        for link in re.findall(r"https?://\S+", text):
            assert link.startswith("https://memory.example.org/"), link
        assert "memory.example.org" in text
    reset = next(message for message in mail.outbox if "/password/reset/" in message.body and alice.email in message.to)
    path = re.search(r"https://memory\.example\.org(/password/reset/\S+)", reset.body)
    assert path
    assert Client().get(path[1], follow=True).status_code == 200


def test_a_host_that_is_not_ours_gets_no_further(alice) -> None:
    answer = Client(headers={"Host": EVIL}).post(reverse("account_reset_password"), {"email": alice.email})
    assert answer.status_code == 400
    assert not mail.outbox


# --- Where a mail went --------------------------------------------------------------------------------


def pages(alice: User, browse: Any) -> dict[str, str]:
    """What is shown after each kind of mail."""
    signed_in, stranger = browse(alice), Client()
    signed_in.post(reverse("account_reauthenticate"), {"password": factories.PASSWORD})
    add = {"email": "new@acme.test", "action_add": ""}
    return {
        "reset": stranger.post(reverse("account_reset_password"), {"email": alice.email}, follow=True),
        "sign-up": stranger.post(reverse("account_signup"), SIGN_UP, follow=True),
        "sent": Client().get(reverse("account_email_verification_sent")),
        "change": signed_in.post(reverse("account_email"), add, follow=True),
        "invite": signed_in.post(reverse("invite"), {"email": "ivy@acme.test", "role": "viewer"}, follow=True),
    }  # fmt: skip


def test_without_a_mail_server_pages_say_where_the_mail_is(alice, browse, settings, capsys) -> None:
    settings.EMAIL_BACKEND = CONSOLE
    for name, answer in pages(alice, browse).items():
        text = answer.content.decode()
        assert "No mail server is set up" in text, name
        assert ("logs/web.log" in text) == (name in ("change", "invite")), f"{name}: how to mend it is for who manages"
        for lie in ("has mail.", "on its way", "We have sent you", "sent to"):
            assert lie not in text, f"{name}: {lie}"
    assert "/password/reset/" in capsys.readouterr().out, "and there it is"


def test_an_invited_reviewer_is_not_told_how_to_run_the_site(bob, browse, settings) -> None:
    settings.EMAIL_BACKEND = CONSOLE
    client = browse(bob)
    client.post(reverse("account_reauthenticate"), {"password": factories.PASSWORD})
    text = client.get(reverse("account_email")).content.decode()
    assert "No mail server is set up" in text
    assert "EMAIL_BACKEND" not in text


def test_with_one_they_say_that_it_was_sent(alice, browse) -> None:
    for name, answer in pages(alice, browse).items():
        text = answer.content.decode()
        assert "No mail server" not in text, name
        assert re.search("has mail|on its way|We have sent", text), name


@pytest.mark.parametrize("backend", ["filebased", "dummy"])
def test_other_backends_that_send_nothing(client, settings, backend) -> None:
    settings.EMAIL_BACKEND = f"django.core.mail.backends.{backend}.EmailBackend"
    text = client.get(reverse("account_email_verification_sent")).content.decode()
    assert "We have sent you" not in text


class Broken:
    """A mail server that takes nothing."""

    def __init__(self, **_: Any) -> None: ...

    def send_messages(self, messages: Any) -> int:
        raise ConnectionRefusedError("nobody listens")


def test_a_mail_server_that_is_down_is_told_and_undoes_what_wanted_the_mail(alice, browse, settings) -> None:
    settings.EMAIL_BACKEND = f"{__name__}.Broken"
    stranger = Client(raise_request_exception=False)
    for name, form in (("account_reset_password", {"email": alice.email}), ("account_signup", SIGN_UP)):
        answer = stranger.post(reverse(name), form)
        assert answer.status_code == 503, name
        assert "could not be sent" in answer.content.decode()
    assert not User.objects.filter(email=SIGN_UP["email"]).exists()


def test_a_password_is_changed_even_when_nobody_can_be_told(alice, browse, settings) -> None:
    client = browse(alice)
    client.post(reverse("account_reauthenticate"), {"password": factories.PASSWORD})
    settings.EMAIL_BACKEND = f"{__name__}.Broken"
    form = {"oldpassword": factories.PASSWORD, "password1": "another long one", "password2": "another long one"}
    assert client.post(reverse("account_change_password"), form).status_code == 302
    alice.refresh_from_db()
    assert alice.check_password("another long one")


# --- The link of an invitation ------------------------------------------------------------------------


@pytest.fixture
def invitation(team, alice) -> Invitation:
    with team_transaction(team):
        return invitations.invite(
            team=team, by=SYSTEM, email="ivy@acme.test", role="viewer", allowed=TeamRole.values, inviter=alice
        )


def link_on(answer: Any) -> str | None:
    found = re.search(r"<code>(http\S+/invitations/\S+)</code>", answer.content.decode())
    return found[1] if found else None


def path_of(link: str) -> str:
    return "/" + link.split("/", 3)[3]


def join(link: str, email: str = "ivy@acme.test") -> Client:
    """Sign up by an invitation's link."""
    client = Client()
    assert client.get(path_of(link)).status_code == 200
    client.post(reverse("account_signup"), {"email": email, "password1": "a long and rare one", "name": "Ivy"})
    return client


def test_those_who_invite_see_the_link_with_a_copy_button(invitation, team, alice, bob, carol, browse) -> None:
    dave = factories.member(team, "dave@acme.test", TeamRole.ADMIN)
    for person in (alice, dave):
        answer = browse(person).get(reverse("team"))
        found = invitations.find((link_on(answer) or "").rsplit("/", 2)[1])
        assert (found.invitation, found.was_mailed) == (invitation, False)
        assert "data-copy" in answer.content.decode()
    for person in (bob, carol):
        assert "/invitations/" not in browse(person).get(reverse("team")).content.decode()


def test_a_link_that_was_handed_on_opens_but_proves_no_address(invitation, team, alice, browse) -> None:
    join(link_on(browse(alice).get(reverse("team"))) or "")
    with team_transaction(team):
        assert Invitation.objects.of(team).get(pk=invitation.pk).accepted_at
    assert not EmailAddress.objects.get(email="ivy@acme.test").verified


def test_a_link_that_was_mailed_proves_it(invitation) -> None:
    found = re.search(r"(http\S+/invitations/\S+)", mail.outbox[-1].body)
    assert found
    join(found[1])
    assert EmailAddress.objects.get(email="ivy@acme.test").verified


def test_where_addresses_must_be_confirmed_a_copied_link_is_no_way_round(invitation, settings) -> None:
    """Or anybody could found a team, invite somebody else's address, and take it with the link."""
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    client = join(invitations.link(invitation))
    assert client.get(reverse("overview")).status_code == 302
    assert not EmailAddress.objects.filter(email="ivy@acme.test", verified=True).exists()


def test_one_kind_of_link_cannot_be_made_from_the_other(invitation) -> None:
    copied, mailed = invitations.link(invitation), invitations.link(invitation, mailed=True)
    assert copied != mailed
    assert invitations.find(copied.rsplit("/", 2)[1]).was_mailed is False
    assert invitations.find(mailed.rsplit("/", 2)[1]).was_mailed is True
