"""Where mails go, said as it is, and the address that their links lead to."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

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


class Site:
    """What mails call this site, in the place of Django's, which believes the Host header of a request."""

    name = "Hindsight"

    @property
    def domain(self) -> str:
        return urlsplit(settings.SITE_URL).netloc


def where_instead() -> str:
    """Where a mail went that was not sent; "" when mails are sent."""
    return _ELSEWHERE.get(settings.EMAIL_BACKEND, "")


def at_our_address(value: Any) -> Any:
    """A link of a mail, led to SITE_URL instead of the host that the request named. What is no link stays.

    Anybody can ask for a mail to somebody else, with a Host of their own choosing where a proxy or
    ALLOWED_HOSTS lets it through: the link, with its secret, would lead there.
    """
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        return value
    parts = urlsplit(value)
    return settings.SITE_URL + parts.path + (f"?{parts.query}" if parts.query else "")
