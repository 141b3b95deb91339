"""The official client logs a person in with nothing but the URL; the person is a script that presses Allow."""

from __future__ import annotations

import asyncio
import html
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2 as httpx
import pytest
from mcp import Client, MCPError
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientMetadata

from hindsight_site.accounts import connected_clients
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import ConnectedClient
from hindsight_site.accounts.tenancy import team_transaction
from tests.certificates import make_certificate, server_context
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db(transaction=True)
CALLBACK = "http://127.0.0.1:47113/callback"


class Keeper:
    """Where the client keeps what it has; a real one writes a file."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


class Person:
    """Somebody with a browser: logs in, reads the page, presses Allow."""

    def __init__(self, site: str, email: str) -> None:
        self.site, self.email = site, email
        self.back = ""
        self.visits = 0

    async def open(self, address: str) -> None:
        await asyncio.to_thread(self._visit, address)

    def _visit(self, address: str) -> None:
        self.visits += 1
        with httpx.Client(base_url=self.site, follow_redirects=True) as browser:
            page = browser.get(address)
            assert str(page.url).startswith(f"{self.site}/login/")
            form = {"username": self.email, "password": PASSWORD, **hidden(page.text)}
            page = browser.post(str(page.url), data=form, headers={"Referer": self.site})
            assert "Allow" in page.text, (page.status_code, page.url, re.findall("<p.*?</p>", page.text))
            fields = {**hidden(page.text), "agent": "coder", "decision": "allow"}
            fields["scopes"] = re.findall(r'name="scopes" value="([^"]+)"', page.text)
            answer = browser.post(str(page.url), data=fields, follow_redirects=False)
            assert answer.status_code == 303, answer.text
            self.back = answer.headers["location"]

    async def result(self) -> AuthorizationCodeResult:
        assert self.back.startswith(CALLBACK)
        found = {name: values[0] for name, values in parse_qs(urlsplit(self.back).query).items()}
        return AuthorizationCodeResult(code=found["code"], state=found["state"], iss=found["iss"])


def hidden(text: str) -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', text)
    return {name: html.unescape(value) for name, value in found}


@pytest.fixture
def url(live_server, settings) -> str:
    settings.SITE_URL = live_server.url
    return f"{live_server.url}/mcp"


def log_in(url: str, person: Person, keeper: Keeper, document: str | None = None) -> OAuthClientProvider:
    return OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(client_name="SDK client", redirect_uris=[CALLBACK]),
        storage=keeper,
        redirect_handler=person.open,
        callback_handler=person.result,
        client_metadata_url=document,
    )


def tools_of(url: str, provider: OAuthClientProvider, mode: str = "auto") -> set[str]:
    async def work() -> set[str]:
        async with (
            create_mcp_http_client(auth=provider) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode, read_timeout_seconds=30) as client,
        ):
            note = await client.call_tool("hindsight_remember", {"content": "Vor dem Testen migrieren: 先迁移 🤖"})
            assert not note.is_error, note
            return {tool.name for tool in (await client.list_tools()).tools}

    return asyncio.run(asyncio.wait_for(work(), timeout=60))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_nothing_but_the_url(url, live_server, agent, alice, mode) -> None:
    person, keeper = Person(live_server.url, alice.email), Keeper()
    assert "hindsight_recall" in tools_of(url, log_in(url, person, keeper), mode)
    with team_transaction(agent.team):
        connected = ConnectedClient.objects.of(agent.team).select_related("token__agent").get()
        assert (connected.client_name, connected.token.agent) == ("SDK client", agent)
    # It comes back without the person, also when only the refresh token is left.
    keeper.tokens = keeper.tokens.model_copy(update={"access_token": "x.y.z", "expires_in": -5})
    first = keeper.tokens.refresh_token
    provider = log_in(url, person, keeper)
    provider.context.token_expiry_time = 1.0
    assert tools_of(url, provider, mode)
    assert keeper.tokens.refresh_token != first
    assert person.visits == 1


def test_a_disconnected_client_asks_the_person_again(url, live_server, agent, alice) -> None:
    person, keeper = Person(live_server.url, alice.email), Keeper()
    tools_of(url, log_in(url, person, keeper))
    with team_transaction(agent.team):
        connected = ConnectedClient.objects.of(agent.team).select_related("token").get()
        connected_clients.disconnect(team=agent.team, by=SYSTEM, connected=connected)
    assert tools_of(url, log_in(url, person, keeper))
    assert person.visits == 2


def test_a_lesser_role_is_told_so(url, live_server, agent, carol) -> None:
    person, keeper = Person(live_server.url, carol.email), Keeper()
    provider = log_in(url, person, keeper)

    async def work() -> Any:
        async with (
            create_mcp_http_client(auth=provider) as http,
            Client(streamable_http_client(url, http_client=http), read_timeout_seconds=30) as client,
        ):
            found = await client.call_tool("hindsight_recall", {"query": "anything"})
            assert not found.is_error
            return found.structured_content

    assert asyncio.run(asyncio.wait_for(work(), timeout=60))["status"] == "no_match"
    assert keeper.tokens.scope == "memory:read"


# --- A client that is known by its document -----------------------------------------------------------


class Document(BaseHTTPRequestHandler):
    """Serves what `served` says, and counts."""

    served: dict[str, Any] = {}  # noqa: RUF012 - set by the test
    asked = 0

    def do_GET(self) -> None:
        Document.asked += 1
        body = json.dumps({"client_id": self.served["client_id"], **self.served}).encode()
        self.send_response(self.served.get("status", 200))
        self.send_header("Content-Type", self.served.get("type", "application/json"))
        if "location" in self.served:
            self.send_header("Location", self.served["location"])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def document(tmp_path, monkeypatch, settings) -> Iterator[str]:
    """The https address of a client's metadata document on loopback, which the operator allows."""
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    settings.OUTBOUND_ALLOW_PRIVATE = True
    server = ThreadingHTTPServer(("127.0.0.1", 0), Document)
    server.socket = server_context(certificate).wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    address = f"https://localhost:{server.server_address[1]}/client.json"
    Document.served = {
        "client_id": address,
        "client_name": "Documented client",
        "redirect_uris": ["http://127.0.0.1/callback"],
        "token_endpoint_auth_method": "none",
    }
    Document.asked = 0
    yield address
    server.shutdown()
    server.server_close()


def test_a_client_by_its_document(url, live_server, agent, alice, document) -> None:
    person, keeper = Person(live_server.url, alice.email), Keeper()
    assert tools_of(url, log_in(url, person, keeper, document))
    assert keeper.client.client_id == document
    assert Document.asked == 1  # kept for a while
    with team_transaction(agent.team):
        assert ConnectedClient.objects.of(agent.team).get().client_name == "Documented client"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"client_id": "https://other.test/client.json"}, "another client"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "public clients"),
        ({"client_secret": "x"}, "public clients"),
        ({"status": 404}, "no client metadata document"),
        ({"status": 302, "location": "https://localhost/other.json"}, "no client metadata document"),
        ({"type": "text/html"}, "no client metadata document"),
        ({"padding": "x" * 20_000}, "no client metadata document"),
        ({"redirect_uris": ["http://evil.test/callback"]}, "redirect address"),
        ({"redirect_uris": []}, "redirect_uris"),
        ({"grant_types": ["implicit"]}, "grant_types"),
    ],
)
def test_documents_that_will_not_do(agent, alice, browse, document, changes, words) -> None:
    Document.served = {**Document.served, **changes}
    asked = {"client_id": document, "redirect_uri": "http://127.0.0.1:1/callback"}
    answer = browse(alice).get("/oauth/authorize", asked)
    assert answer.status_code == 400
    assert words in answer.content.decode()


def test_a_document_in_the_operators_network_is_not_fetched(agent, alice, browse, document, settings) -> None:
    settings.OUTBOUND_ALLOW_PRIVATE = False
    for address in (document, "https://127.0.0.1/x.json", "https://169.254.169.254/x", "https://[::1]/x"):
        answer = browse(alice).get("/oauth/authorize", {"client_id": address, "redirect_uri": CALLBACK})
        assert answer.status_code == 400
        assert "private" in answer.content.decode()
    assert Document.asked == 0


def test_nobody_who_is_not_logged_in_has_anything_fetched(document, client) -> None:
    assert client.get("/oauth/authorize", {"client_id": document, "redirect_uri": CALLBACK}).status_code == 302
    assert Document.asked == 0


def test_without_a_person_the_client_is_refused(url) -> None:
    async def work() -> None:
        async with Client(streamable_http_client(url), read_timeout_seconds=30) as client:
            await client.list_tools()

    with pytest.raises((MCPError, BaseExceptionGroup)):
        asyncio.run(asyncio.wait_for(work(), timeout=60))
