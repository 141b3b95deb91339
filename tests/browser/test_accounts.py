"""People and accounts in a real browser: passkeys under the CSP, small screens, the dark, read by axe.

With HINDSIGHT_SCREENSHOTS=1 the pages are also kept as docs/screenshots/accounts-*.png.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from allauth.mfa.totp.internal import auth
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.core import mail
from django.urls import reverse
from playwright.sync_api import Page, expect

from hindsight_site.accounts import invitations, permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.tenancy import team_transaction
from tests import factories
from tests.browser.conftest import CHROMIUM, fits

SCREENSHOTS = Path(settings.BASE_DIR) / "docs" / "screenshots"
SIZES = {"wide": (1280, 800), "small": (360, 740)}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"),
]

ENTRANCES = ["login", "account_signup", "account_reset_password", "account_email_verification_sent"]
OWN = [
    "team", "team_settings", "new_team", "account", "account_email", "account_change_password", "mfa_index",
    "mfa_activate_totp", "mfa_add_webauthn",
]  # fmt: skip


@pytest.fixture
def open_page(new_page) -> Callable[..., Page]:
    """`open_page(**options)` is a new browser in which nobody is signed in."""
    return partial(new_page, None)


def is_overview(url: str) -> bool:
    return urlsplit(url).path == "/"


def log_in(page: Page, user: User) -> None:
    page.goto(reverse("login"))
    page.get_by_label("E-mail address").fill(user.email)
    page.get_by_label("Password").fill(factories.PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()
    page.wait_for_url(is_overview)
    page.goto(reverse("account_reauthenticate"))
    page.get_by_label("Password").fill(factories.PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    page.wait_for_url(is_overview)


def check(page: Page, name: str) -> None:
    """Nothing sticks out to the right, nobody is shut out; keep a picture when asked to."""
    fits(page)
    found = Axe().run(page)
    assert found.violations_count == 0, f"{name}: {found.generate_report()}"
    if os.environ.get("HINDSIGHT_SCREENSHOTS"):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"accounts-{name}.png", full_page=True)


@pytest.fixture
def crowd(team: Team, alice: User, bob: User, carol: User) -> Team:
    with team_transaction(team):
        for email, role in (
            ("a.rather.long.address.of.somebody@consulting.example.test", "admin"),
            ("n@x.test", "viewer"),
        ):
            invitations.invite(
                team=team, by=person(alice), email=email, role=role,
                allowed=permissions.ROLES_IN_GIFT["owner"], inviter=alice,
            )  # fmt: skip
    return team


@pytest.mark.parametrize(("size", "colours"), [("wide", "dark"), ("small", "light")])
def test_pages_fit_and_can_be_read(crowd: Team, alice: User, open_page, size, colours) -> None:
    width, height = SIZES[size]
    page = open_page(viewport={"width": width, "height": height}, color_scheme=colours)
    for name in ENTRANCES:
        page.goto(reverse(name))
        check(page, f"{name}-{size}-{colours}")
    log_in(page, alice)
    for name in OWN:
        page.goto(reverse(name))
        check(page, f"{name}-{size}-{colours}")


@pytest.mark.parametrize("size", SIZES)
def test_pages_on_the_way_fit_and_can_be_read(crowd: Team, alice: User, bob: User, open_page, size) -> None:
    width, height = SIZES[size]
    page = open_page(viewport={"width": width, "height": height})
    link = next(word for word in mail.outbox[-1].body.split() if "/invitations/" in word)
    page.goto(urlsplit(link).path)
    check(page, f"invitation-{size}")
    page.get_by_role("link", name="Create an account and join").click()
    expect(page.get_by_role("heading", name="Join Acme")).to_be_visible()
    check(page, f"signup_invited-{size}")
    page.context.clear_cookies()
    log_in(page, alice)
    page.goto(reverse("account_reauthenticate"))
    check(page, f"reauthenticate-{size}")
    page.goto(reverse("mfa_activate_totp"))
    page.get_by_label("Authenticator code").fill(code_of(page.locator("code").text_content() or ""))
    page.get_by_role("button", name="Turn on").click()
    page.wait_for_url(f"**{reverse('mfa_view_recovery_codes')}")
    check(page, f"recovery_codes-{size}")
    page.goto(reverse("mfa_generate_recovery_codes"))
    check(page, f"recovery_codes_new-{size}")
    page.goto(reverse("mfa_deactivate_totp"))
    check(page, f"totp_off-{size}")
    page.goto(reverse("team"))
    page.get_by_label("Remove bob@acme.test").click()
    check(page, f"remove-{size}")
    page.goto(reverse("team_settings"))
    page.get_by_label("Type acme to confirm").fill("acme")
    page.get_by_role("button", name="Delete Acme for good").click()
    expect(page.get_by_role("heading", name="Acme is being deleted")).to_be_visible()
    check(page, f"deletion-{size}")
    page.context.clear_cookies()
    page.goto(reverse("login"))
    page.get_by_label("E-mail address").fill(alice.email)
    page.get_by_label("Password").fill(factories.PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("heading", name="Second factor")).to_be_visible()
    check(page, f"second_factor-{size}")


def code_of(secret: str) -> str:
    return auth.format_hotp_value(auth.hotp_value(secret, int(time.time()) // 30))


def test_a_passkey_is_added_and_logs_in(alice: User, open_page) -> None:
    page = open_page()
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    device = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
        "isUserVerified": True, "automaticPresenceSimulation": True,
    }  # fmt: skip
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": device})
    log_in(page, alice)
    page.goto(reverse("mfa_add_webauthn"))
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add it").click()
    page.wait_for_url(f"**{reverse('mfa_view_recovery_codes')}**")
    page.goto(reverse("mfa_list_webauthn"))
    expect(page.get_by_text("passkey", exact=True)).to_be_visible()
    check(page, "mfa_list_webauthn")
    page.get_by_role("link", name="Rename").click()
    page.get_by_label("Name").fill("Alice's laptop")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Remove Alice's laptop").click()
    expect(page.get_by_role("heading", name="Remove Alice's laptop?")).to_be_visible()
    check(page, "mfa_remove_webauthn")
    page.get_by_role("link", name="Keep it").click()
    page.context.clear_cookies()
    page.goto(reverse("login"))
    page.get_by_role("button", name="Log in with a passkey").click()
    page.wait_for_url(is_overview)
    page.goto(reverse("account"))
    expect(page.get_by_text(alice.email).first).to_be_visible()


def test_a_passkey_that_is_cancelled_says_so(alice: User, open_page) -> None:
    page = open_page()
    page.add_init_script(
        "navigator.credentials.get = async () => { throw new DOMException('cancelled', 'NotAllowedError') }"
    )
    page.goto(reverse("login"))
    page.get_by_role("button", name="Log in with a passkey").click()
    expect(page.get_by_role("alert")).to_contain_text("The passkey was not used")


def test_without_scripts_people_are_managed_all_the_same(crowd: Team, alice: User, bob: User, open_page) -> None:
    page = open_page(java_script_enabled=False)
    log_in(page, alice)
    page.goto(reverse("team"))
    page.get_by_label("Role of bob@acme.test", exact=True).select_option("admin")
    page.get_by_role("button", name="Set the role of bob@acme.test").click()
    expect(page.get_by_role("status")).to_contain_text("bob@acme.test is now admin")
    page.get_by_label("Remove carol@acme.test").click()
    page.get_by_role("button", name="Remove carol@acme.test").last.click()
    expect(page.get_by_role("status")).to_contain_text("carol@acme.test is no longer in Acme")
