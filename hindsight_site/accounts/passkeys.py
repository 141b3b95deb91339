"""Passkeys: what a browser answers is a stranger's bytes, and a wrong form of it is a wrong passkey, no crash.

allauth and fido2 read the answer with `answer["response"]["attestationObject"]` and the like, and raise
whatever comes of that. Here its form is checked first, and whatever they still raise is turned into the
same words as a passkey that does not fit.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse, RateLimited
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn import forms as allauth_forms
from allauth.mfa.webauthn.views import ReauthenticateWebAuthnView
from django import forms
from django.core.exceptions import ValidationError
from django.db import DatabaseError, InterfaceError
from django.forms.fields import InvalidJSONInput
from django.http import HttpResponse

logger = logging.getLogger(__name__)

NOT_ACCEPTED = "That passkey was not accepted. Try it again, or choose another way."
MAX_CHARS = 64 * 1024  # an attestation with its certificates is a few thousand

# Of an answer, the texts that it must have (W3C WebAuthn, section 5.1).
REGISTERED = ("clientDataJSON", "attestationObject")
ASSERTED = ("clientDataJSON", "authenticatorData", "signature")


class CredentialField(forms.JSONField):
    """A browser's answer as JSON: an object of the right form, which PostgreSQL can keep."""

    default_error_messages = {"required": NOT_ACCEPTED, "invalid": NOT_ACCEPTED}  # noqa: RUF012 - Django's protocol
    widget = forms.HiddenInput

    def __init__(self, *, texts: tuple[str, ...]) -> None:
        super().__init__()
        self.texts = texts

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str) and len(value) > MAX_CHARS:
            raise ValidationError(NOT_ACCEPTED, code="invalid")
        try:
            answer = super().to_python(value)
        except (RecursionError, ValueError):  # nested too deep; a number of too many digits
            raise ValidationError(NOT_ACCEPTED, code="invalid") from None
        if answer is not None and not (has_form(answer, self.texts) and can_be_kept(answer)):
            raise ValidationError(NOT_ACCEPTED, code="invalid")
        return answer

    def bound_data(self, data: Any, initial: Any) -> Any:
        """What the form is shown with again: nothing, an answer is good for one try."""
        return InvalidJSONInput("")


def has_form(answer: Any, texts: tuple[str, ...]) -> bool:
    """Whether `answer` is an object as a browser makes it, with the named texts in its response."""
    if not isinstance(answer, dict):
        return False
    response, extensions = answer.get("response"), answer.get("clientExtensionResults", {})
    return (
        isinstance(response, dict)
        and all(isinstance(answer.get(name), str) for name in ("id", "rawId", "type"))
        and all(isinstance(response.get(name), str) for name in texts)
        and isinstance(response.get("userHandle") or "", str)
        and isinstance(extensions, dict)
        and isinstance(extensions.get("credProps", {}), dict)
    )


def can_be_kept(answer: Any) -> bool:
    """Whether PostgreSQL takes it as jsonb: no NUL, no half of a surrogate pair, no NaN or infinity."""
    try:
        text = json.dumps(answer, ensure_ascii=False, allow_nan=False)
        text.encode()
    except ValueError:
        return False
    return "\\u0000" not in text


@contextmanager
def misfits_are_refused() -> Iterator[None]:
    """Turn whatever the parsers raise over a stranger's bytes into one refusal; what is ours goes through."""
    try:
        yield
    except ValidationError as error:
        if getattr(error, "code", "") != "incorrect_code":
            raise
        raise ValidationError(NOT_ACCEPTED, code="incorrect_code") from error
    except (DatabaseError, InterfaceError, RateLimited, ImmediateHttpResponse):
        raise
    except Exception as error:
        logger.info("a passkey's answer could not be read", extra={"error": type(error).__name__})
        raise ValidationError(NOT_ACCEPTED, code="incorrect_code") from None


class AddForm(allauth_forms.AddWebAuthnForm):
    """A new passkey."""

    credential = CredentialField(texts=REGISTERED)

    def clean(self) -> dict[str, Any]:
        with misfits_are_refused():
            return super().clean()


class AuthenticateForm(allauth_forms.AuthenticateWebAuthnForm):
    """A passkey as second factor."""

    credential = CredentialField(texts=ASSERTED)

    def clean_credential(self) -> Authenticator:
        with misfits_are_refused():
            return super().clean_credential()


class LoginForm(allauth_forms.LoginWebAuthnForm):
    """A passkey instead of a password."""

    credential = CredentialField(texts=ASSERTED)

    def clean_credential(self) -> Authenticator:
        with misfits_are_refused():
            return super().clean_credential()


class ReauthenticateForm(allauth_forms.ReauthenticateWebAuthnForm):
    """A passkey to confirm who is at the keyboard."""

    credential = CredentialField(texts=ASSERTED)

    def clean_credential(self) -> Authenticator:
        with misfits_are_refused():
            return super().clean_credential()


class ReauthenticateView(ReauthenticateWebAuthnView):
    """Confirm with a passkey. allauth's sends the signed-in person to the log-in page when it does not fit."""

    def form_invalid(self, form: forms.Form) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form=form))


reauthenticate = ReauthenticateView.as_view()
