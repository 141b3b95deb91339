"""What a client and a person do, one after the other, to connect."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from django.conf import settings
from django.test import Client

from hindsight_site.accounts import connected_clients, oauth_clients

VERIFIER = "a-verifier-of-the-length-that-is-wanted-here-1"
REDIRECT = "http://127.0.0.1:4711/back"
FORM = {"agent": "coder", "scopes": ["memory:read", "memory:write"], "decision": "allow"}


def registered(*redirect_uris: str, name: str = "Test client") -> str:
    return oauth_clients.register({"client_name": name, "redirect_uris": list(redirect_uris or (REDIRECT,))}).id


def question(client_id: str, **changes: Any) -> dict[str, Any]:
    """The parameters that a client sends a browser with; None leaves one out."""
    given = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": REDIRECT,
        "state": "s-1",
        "scope": "memory:read memory:write",
        "code_challenge": connected_clients.challenge_of(VERIFIER),
        "code_challenge_method": "S256",
        "resource": f"{settings.SITE_URL}/mcp",
        **changes,
    }
    return {name: value for name, value in given.items() if value is not None}


def answer_of(response: Any) -> dict[str, str]:
    """The parameters with which the browser is sent back."""
    assert response.status_code == 303, response.content
    return {name: values[0] for name, values in parse_qs(urlsplit(response["Location"]).query).items()}


def decide(browser: Client, asked: dict[str, Any], **changes: Any) -> Any:
    """The person answers the page's form, which stays at the page's address."""
    form = {**FORM, **changes}
    query = browser.get("/oauth/authorize", asked).wsgi_request.META["QUERY_STRING"]
    return browser.post(f"/oauth/authorize?{query}", {k: v for k, v in form.items() if v is not None})


def code_from(browser: Client, client_id: str, **changes: Any) -> str:
    return answer_of(decide(browser, question(client_id), **changes))["code"]


def post(address: str, **form: Any) -> Any:
    """POST as a client does; None leaves a field out."""
    body = urlencode({name: value for name, value in form.items() if value is not None})
    strict = Client(enforce_csrf_checks=True)
    return strict.post(address, body, content_type="application/x-www-form-urlencoded")


def exchange(**form: Any) -> Any:
    return post("/oauth/token", **form)


def redeem(code: str, client_id: str, **changes: Any) -> Any:
    given = {"code": code, "client_id": client_id, "redirect_uri": REDIRECT, "code_verifier": VERIFIER, **changes}
    return exchange(grant_type="authorization_code", **given)


def renew(refresh: str, client_id: str, **changes: Any) -> Any:
    return exchange(grant_type="refresh_token", refresh_token=refresh, client_id=client_id, **changes)
