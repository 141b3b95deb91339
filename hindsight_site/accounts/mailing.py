"""Where mails go, said as it is, and the address that their links lead to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string

_BACKENDS = "django.core.mail.backends."
_LOG = (
    "No mail server is set up here, so nobody has mail: it was written to the server's log instead. Whoever runs "
    "this site finds it there (in logs/web.log of the data folder), and sets a mail server up with EMAIL_BACKEND "
    "and EMAIL_HOST."
)
_ELSEWHERE = {
    f"{_BACKENDS}console.EmailBackend": _LOG,
    f"{_BACKENDS}filebased.EmailBackend": (
        "No mail server is set up here, so nobody has mail: it was written to a file. Whoever runs this site finds it."
    ),
    f"{_BACKENDS}dummy.EmailBackend": "Mails are switched off here: nothing was sent.",
}


_ASK = (
    "No mail server is set up here, so no mail will come. Whoever runs this site finds yours where it was written "
    "instead, and can hand you the link."
)


class Site:
    """What mails call this site, in the place of Django's, which believes the Host header of a request."""

    name = "Hindsight"

    @property
    def domain(self) -> str:
        return urlsplit(settings.SITE_URL).netloc


def where_instead(*, for_operator: bool = True) -> str:
    """Where a mail went that was not sent; "" when mails are sent. How to set them up is for the operator only."""
    told = _ELSEWHERE.get(settings.EMAIL_BACKEND, "")
    return told if for_operator or not told else _ASK


def at_our_address(value: Any) -> Any:
    """A link of a mail, led to SITE_URL instead of the host that the request named. What is no link stays.

    Anybody can ask for a mail to somebody else, with a Host of their own choosing where a proxy or
    ALLOWED_HOSTS lets it through: the link, with its secret, would lead there.
    """
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        return value
    parts = urlsplit(value)
    return settings.SITE_URL + parts.path + (f"?{parts.query}" if parts.query else "")


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail that nobody asked for by a click: its words, one link, and the link that ends its kind."""

    subject: str
    lines: tuple[str, ...]  # paragraphs of plain text
    link: str
    link_words: str
    why: str  # whom it is sent to, and because of what
    unsubscribe: str


def message_of(letter: Letter, address: str) -> EmailMultiAlternatives:
    """Return the letter as a message in plain text and HTML, with the headers that let it be ended by one click.

    RFC 8058 (List-Unsubscribe-Post), RFC 3834 (Auto-Submitted: nobody's absence is answered to it).
    """
    headers = {
        "List-Unsubscribe": f"<{letter.unsubscribe}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        "Auto-Submitted": "auto-generated",
    }
    subject = " ".join(letter.subject.split())  # a name with a line break would be a header of its own
    context = {"letter": letter}
    text = render_to_string("accounts/mail/letter.txt", context)
    message = EmailMultiAlternatives(subject, text, None, [address], headers=headers)
    message.attach_alternative(render_to_string("accounts/mail/letter.html", context), "text/html")
    return message
