"""What we ask of allauth differently: who may sign up, our words, and sealed second factors."""

from __future__ import annotations

import base64
import logging
from contextlib import suppress
from functools import lru_cache
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.http import HttpRequest

from hindsight_site.accounts import invitations, mailing
from hindsight_site.accounts.invitations import MailFailed
from hindsight_site.accounts.throttle import client_address

logger = logging.getLogger(__name__)


class AccountAdapter(DefaultAccountAdapter):
    """Accounts: sign-up can be closed to all but the invited; messages in our words."""

    error_messages = {  # noqa: RUF012 - allauth's protocol
        **DefaultAccountAdapter.error_messages,
        "email_password_mismatch": (
            "That e-mail address and password do not belong together. Both are checked, the password "
            "with upper and lower case."
        ),
        "too_many_login_attempts": "Too many failed attempts. Wait five minutes, or reset the password.",
        "email_taken": "There is an account with this e-mail address already. Log in, or reset the password.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return settings.SIGN_UP_OPEN or invitations.of_session(request.session) is not None

    def get_client_ip(self, request: HttpRequest) -> str:
        """For the throttling of log-ins. allauth's fails on a list of proxies that is too short."""
        return client_address(request)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail with our address in it, whatever Host the request named. Raises `MailFailed`."""
        ours = {name: mailing.at_our_address(value) for name, value in context.items()}
        try:
            super().send_mail(template_prefix, email, {**ours, "current_site": mailing.Site()})
        except OSError as error:  # smtplib's errors are OSErrors
            logger.warning("a mail could not be sent", extra={"error": type(error).__name__})
            raise MailFailed("The mail could not be sent, so nothing was changed. Try again later.") from error

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """Tell a person what was changed. What was changed stays so when the mail cannot be sent."""
        with suppress(MailFailed):
            super().send_notification_mail(*args, **kwargs)

    def format_email_subject(self, subject: str) -> str:
        return f"Hindsight: {subject}"


class TwoFactorAdapter(DefaultMFAAdapter):
    """Second factors: TOTP secrets and recovery codes are encrypted with a key made from SECRET_KEY."""

    def get_totp_issuer(self) -> str:
        return "Hindsight"

    def encrypt(self, text: str) -> str:
        return _cipher().encrypt(text.encode()).decode("ascii")

    def decrypt(self, encrypted_text: str) -> str:
        return _cipher().decrypt(encrypted_text.encode("ascii")).decode()


def _cipher() -> MultiFernet:
    secrets = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_derived(secret)) for secret in secrets])


@lru_cache(maxsize=4)
def _derived(secret: str) -> bytes:
    derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"hindsight second factors")
    return base64.urlsafe_b64encode(derivation.derive(secret.encode()))
