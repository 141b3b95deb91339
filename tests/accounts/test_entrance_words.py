"""allauth's pages outside an account speak as the other pages do, and each says where to go on."""

from __future__ import annotations

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse

from tests import factories


def words(client: Client, address: str) -> str:
    return client.get(address, follow=True).content.decode()


def link_of_last_mail() -> str:
    return next(word for word in mail.outbox[-1].body.split() if "/password/reset/" in word)


def test_a_spent_link_for_a_new_password_offers_another(db):
    page = words(Client(), "/password/reset/1-abc/")
    assert "<h1>This link no longer works</h1>" in page
    assert f'href="{reverse("account_reset_password")}"' in page


def test_a_new_password_is_chosen_and_leads_to_the_login(alice):
    client = Client()
    client.post(reverse("account_reset_password"), {"email": alice.email})
    link = link_of_last_mail()
    page = client.get(link, follow=True)
    assert "<h1>Choose a new password</h1>" in page.content.decode()
    chosen = {"password1": "quite-another-one-7", "password2": "quite-another-one-7"}
    done = client.post(page.request["PATH_INFO"], chosen, follow=True).content.decode()
    assert "<h1>The password is changed</h1>" in done
    assert f'href="{reverse("login")}"' in done


def test_an_account_that_is_switched_off_says_whom_to_ask(db):
    assert "Ask whoever runs this site" in words(Client(), reverse("account_inactive"))


def test_a_spent_link_of_a_confirmation_offers_another(db):
    page = words(Client(), reverse("account_confirm_email", args=["spent"]))
    assert "<h1>This link no longer works</h1>" in page
    assert f'href="{reverse("account_email")}"' in page


def test_an_address_is_confirmed_with_one_button(alice):
    alice.emailaddress_set.all().delete()
    client = Client()
    client.force_login(alice)
    form = {"email": "alice@new.test", "action_add": ""}
    client.post(reverse("account_reauthenticate"), {"password": factories.PASSWORD})
    client.post(reverse("account_email"), form)
    link = next(word for word in mail.outbox[-1].body.split() if "/account/confirm/" in word)
    page = words(client, link)
    assert "<h1>Confirm the address</h1>" in page
    assert "alice@new.test" in page


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("account_reset_password", "E-mail address"),
        ("account_change_password", "Current password"),
        ("account_reauthenticate", "Password"),
        ("account_email", "New address"),
    ],
)
def test_a_field_has_a_label_and_no_placeholder_that_repeats_it(browse, alice, name, label):
    client = browse(alice) if name != "account_reset_password" else Client()
    page = words(client, reverse(name))
    assert f">{label}</label>" in page
    assert "placeholder=" not in page
