"""The exchange as OAuth clients speak it, and the documents they find their way by."""

from __future__ import annotations

import asyncio
import base64
from typing import Any
from urllib.parse import quote

import jwt
import pytest
from django.test import Client
from django.utils import timezone

from hindsight_site.accounts import access_tokens, actions, signing_keys
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.enums import Audience
from hindsight_site.accounts.models import ApiToken, SigningKey
from tests import factories

pytestmark = pytest.mark.django_db

FORM = "application/x-www-form-urlencoded"
GRANT = {"grant_type": "client_credentials"}


@pytest.fixture
def secret(agent) -> str:
    return factories.token(agent.team, agent, ["memory:read", "memory:write"])


def ask(form: dict[str, Any] | str, header: str = "", **options: Any) -> Any:
    body = form if isinstance(form, str) else "&".join(f"{k}={quote(str(v))}" for k, v in form.items())
    headers = {"Authorization": header} if header else {}
    return Client(enforce_csrf_checks=True).post(
        "/oauth/token", body, content_type=options.pop("content_type", FORM), headers=headers
    )


def basic(name: str, password: str) -> str:
    pair = f"{quote(name, safe='')}:{quote(password, safe='')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def credentials_of(secret: str) -> dict[str, str]:
    return {"client_id": secret[:11], "client_secret": secret}


def is_error(answer: Any, error: str, status: int = 400) -> str:
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/json"
    assert answer["Cache-Control"] == "no-store"
    body = answer.json()
    assert set(body) == {"error", "error_description"}
    assert body["error"] == error
    # RFC 6749, section 5.2: printable ASCII without quotes and backslashes.
    assert body["error_description"].isascii()
    assert not set(body["error_description"]) & {'"', "\\"}
    return body["error_description"]


# --- The grant ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("client_id", ["{prefix}", "hs_{prefix}"])
@pytest.mark.parametrize("by_header", [True, False])
def test_client_credentials(secret, client_id, by_header) -> None:
    name = client_id.format(prefix=secret[3:11])
    if by_header:
        answer = ask(GRANT, basic(name, secret))
    else:
        answer = ask({**GRANT, "client_id": name, "client_secret": secret})
    assert answer.status_code == 200
    assert (answer["Cache-Control"], answer["Pragma"]) == ("no-store", "no-cache")
    body = answer.json()
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 600)
    assert body["scope"] == "memory:read memory:write"
    verified = access_tokens.read(body["access_token"], audience=Audience.REST)
    assert verified.token.prefix == secret[3:11]
    assert verified.token.last_used_at is not None


@pytest.mark.parametrize("audience", Audience)
@pytest.mark.parametrize("ending", ["", "/"])
def test_resource_chooses_the_audience(secret, audience, ending) -> None:
    address = access_tokens.resource(audience) + ending
    answer = ask({**GRANT, **credentials_of(secret), "resource": address})
    assert access_tokens.read(answer.json()["access_token"], audience=audience)


@pytest.mark.parametrize("resource", ["https://elsewhere.test/mcp", "{site}", "{site}/mcp/x", "mcp"])
def test_an_unknown_resource(secret, settings, resource) -> None:
    form = {**GRANT, **credentials_of(secret), "resource": resource.format(site=settings.SITE_URL)}
    is_error(ask(form), "invalid_target")


def test_two_resources(secret) -> None:
    one, other = (quote(access_tokens.resource(audience)) for audience in Audience)
    form = f"grant_type=client_credentials&client_id={secret[3:11]}&client_secret={secret}"
    is_error(ask(f"{form}&resource={one}&resource={other}"), "invalid_target")
    assert ask(f"{form}&resource={one}&resource={one}").status_code == 200


@pytest.mark.parametrize(
    ("scope", "granted"),
    [
        ("memory:read", "memory:read"),
        ("memory:read admin", "memory:read"),
        ("admin memory:write memory:read reflect", "memory:read memory:write"),
        ("", "memory:read memory:write"),
    ],
)
def test_scope_is_never_more_than_the_token_has(secret, scope, granted) -> None:
    body = ask({**GRANT, **credentials_of(secret), "scope": scope}).json()
    assert body["scope"] == granted
    verified = access_tokens.read(body["access_token"], audience=Audience.REST)
    assert verified.scopes == set(granted.split())


@pytest.mark.parametrize("scope", ["admin", "reflect review", "everything", "memory:read everything"])
def test_a_scope_that_cannot_be_granted(secret, scope) -> None:
    is_error(ask({**GRANT, **credentials_of(secret), "scope": scope}), "invalid_scope")


def test_other_grants(secret) -> None:
    is_error(ask(credentials_of(secret)), "invalid_request")
    for grant in ("password", "x"):
        is_error(ask({**credentials_of(secret), "grant_type": grant}), "unsupported_grant_type")
    for grant in ("authorization_code", "refresh_token"):  # of people's clients, which have no secret
        is_error(ask({**credentials_of(secret), "grant_type": grant}), "invalid_request")


def test_wrong_clients(secret, other_agent) -> None:
    strangers = factories.token(other_agent.team, other_agent)
    unknown = "hs_aaaaaaaa_" + "A" * 43
    is_error(ask({**GRANT}), "invalid_client", 401)
    is_error(ask({**GRANT, "client_id": secret[3:11]}), "invalid_client", 401)
    is_error(ask({**GRANT, "client_secret": secret}), "invalid_client", 401)
    is_error(ask({**GRANT, **credentials_of(unknown)}), "invalid_client", 401)
    is_error(ask({**GRANT, "client_id": strangers[3:11], "client_secret": secret}), "invalid_client", 401)
    is_error(ask({**GRANT, "client_id": "x", "client_secret": "hs_…"}), "invalid_client", 401)


def test_an_access_token_is_no_client_secret(secret) -> None:
    signed = ask({**GRANT, **credentials_of(secret)}).json()["access_token"]
    is_error(ask({**GRANT, "client_id": secret[3:11], "client_secret": signed}), "invalid_client", 401)
    is_error(ask(GRANT, f"Bearer {signed}"), "invalid_client", 401)


@pytest.mark.parametrize("header", ["Basic", "Basic !!!", "Basic eA==", "Basic /w==", "Bearer x", "x"])
def test_an_unreadable_header_is_challenged(header) -> None:
    answer = ask(GRANT, header)
    is_error(answer, "invalid_client", 401)
    assert answer["WWW-Authenticate"].startswith("Basic ")


def test_a_wrong_secret_in_the_header_is_challenged(secret) -> None:
    answer = ask(GRANT, basic(secret[3:11], secret[:-1] + "?"))
    is_error(answer, "invalid_client", 401)
    assert answer["WWW-Authenticate"].startswith("Basic ")


def test_a_secret_in_two_places(secret) -> None:
    is_error(ask({**GRANT, **credentials_of(secret)}, basic(secret[3:11], secret)), "invalid_request")


def test_a_parameter_sent_twice(secret) -> None:
    form = f"grant_type=client_credentials&client_id={secret[3:11]}&client_secret={secret}"
    is_error(ask(f"{form}&scope=memory:read&scope=memory:write"), "invalid_request")
    is_error(ask(f"{form}&grant_type=client_credentials"), "invalid_request")


def test_the_form_must_be_a_form(secret, settings) -> None:
    is_error(ask("{}", content_type="application/json"), "invalid_request")
    is_error(ask("--x--", content_type="multipart/form-data; boundary=x"), "invalid_request")
    is_error(ask({**GRANT, **credentials_of(secret)}, content_type=f"{FORM}; charset=utf-16"), "invalid_request")
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    is_error(ask({**GRANT, **credentials_of(secret), "padding": "x" * 2000}), "invalid_request")


def test_credentials_in_the_address_count_for_nothing(secret) -> None:
    answer = Client().post(
        f"/oauth/token?client_id={secret[3:11]}&client_secret={secret}",
        "grant_type=client_credentials",
        content_type=FORM,
    )
    is_error(answer, "invalid_client", 401)


def test_only_post(client) -> None:
    assert client.get("/oauth/token").status_code == 405


def test_a_dead_token_is_refused_and_says_why(secret, agent) -> None:
    token = ApiToken.objects.of(agent.team).get(prefix=secret[3:11])
    signed = ask({**GRANT, **credentials_of(secret)}).json()["access_token"]
    actions.change_agent(team=agent.team, by=SYSTEM, agent=agent, disabled=True)
    assert "disabled" in is_error(ask({**GRANT, **credentials_of(secret)}), "invalid_client", 401)
    actions.change_agent(team=agent.team, by=SYSTEM, agent=agent, disabled=False)
    actions.revoke_token(team=agent.team, by=SYSTEM, token=token)
    assert "revoked" in is_error(ask({**GRANT, **credentials_of(secret)}), "invalid_client", 401)
    answer = Client().get("/api/v1/me", headers={"Authorization": f"Bearer {signed}"})
    assert (answer.status_code, answer.json()["code"]) == (401, "token_revoked")


# --- The documents ------------------------------------------------------------------------------------


def test_the_key_set_verifies_what_we_sign(client, secret) -> None:
    answer = client.get("/.well-known/jwks.json")  # before anything was signed
    assert answer["Content-Type"] == "application/jwk-set+json"
    assert answer["Cache-Control"] == "public, max-age=300"
    keys = jwt.PyJWKSet.from_dict(answer.json())
    assert {key.key_id for key in keys.keys} == set(SigningKey.objects.values_list("kid", flat=True))
    signed = ask({**GRANT, **credentials_of(secret)}).json()["access_token"]
    key = keys[jwt.get_unverified_header(signed)["kid"]]
    audience = access_tokens.resource(Audience.REST)
    assert jwt.decode(signed, key, algorithms=["EdDSA"], audience=audience)["sub"] == secret[:11]
    for one in answer.json()["keys"]:
        assert set(one) == {"kty", "crv", "x", "kid", "use", "alg"}


def test_the_key_set_holds_a_retiring_key_until_its_tokens_are_gone(client) -> None:
    first = signing_keys.signer().kid
    SigningKey.objects.filter(state="next").update(created_at=timezone.now() - signing_keys.ACCEPTED_AFTER_USE)
    signing_keys.rotate()
    kids = [key["kid"] for key in client.get("/.well-known/jwks.json").json()["keys"]]
    assert first in kids
    assert len(kids) == 3
    SigningKey.objects.filter(kid=first).update(accepted_until=timezone.now())
    assert first not in str(client.get("/.well-known/jwks.json").content)


def test_the_server_document_lists_only_what_answers(client, settings) -> None:
    document = client.get("/.well-known/oauth-authorization-server").json()
    assert document["issuer"] == settings.SITE_URL
    assert document["grant_types_supported"] == ["authorization_code", "refresh_token", "client_credentials"]
    assert document["response_types_supported"] == ["code"]
    assert document["code_challenge_methods_supported"] == ["S256"]
    for name, address in document.items():
        if name.endswith(("_endpoint", "_uri", "_documentation")):
            assert client.get(address.removeprefix(settings.SITE_URL)).status_code != 404, name


@pytest.mark.parametrize(("path", "resource"), [("", "/mcp"), ("/mcp", "/mcp"), ("/api/v1", "/api/v1")])
def test_the_resource_documents(client, settings, path, resource) -> None:
    document = client.get(f"/.well-known/oauth-protected-resource{path}").json()
    assert document["resource"] == settings.SITE_URL + resource
    assert document["authorization_servers"] == [settings.SITE_URL]
    assert document["bearer_methods_supported"] == ["header"]
    assert ("admin" in document["scopes_supported"]) == (resource == "/api/v1")


def test_an_unknown_resource_has_no_document(client) -> None:
    assert client.get("/.well-known/oauth-protected-resource/elsewhere").status_code == 404


def test_a_refused_request_says_where_to_get_a_token(client, settings) -> None:
    challenge = client.get("/api/v1/me")["WWW-Authenticate"]
    address = f"{settings.SITE_URL}/.well-known/oauth-protected-resource/api/v1"
    assert challenge == f'Bearer realm="hindsight", resource_metadata="{address}"'
    wrong = client.get("/api/v1/me", headers={"Authorization": "Bearer a.b.c"})["WWW-Authenticate"]
    assert wrong == f'{challenge}, error="invalid_token"'


# --- A client in use ----------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_the_clients_of_the_mcp_sdk_log_in_by_themselves(live_server, settings, team, method) -> None:
    extension = pytest.importorskip("mcp.client.auth.extensions.client_credentials")
    httpx = pytest.importorskip("httpx2")
    settings.SITE_URL = live_server.url
    agent = factories.agent(team, "coder")
    secret = factories.token(team, agent, ["memory:read"])

    async def call() -> Any:
        provider = extension.ClientCredentialsOAuthProvider(
            server_url=f"{live_server.url}/api/v1", storage=Kept(), client_id=secret[:11],
            client_secret=secret, token_endpoint_auth_method=method, issuer=live_server.url,
        )  # fmt: skip
        async with httpx.AsyncClient(auth=provider) as session:
            return await session.get(f"{live_server.url}/api/v1/me")

    me = asyncio.run(call()).json()
    assert (me["agent"], me["token_scopes"]) == ("coder", ["memory:read"])


class Kept:
    """What the SDK asks of a place to keep tokens in."""

    def __init__(self) -> None:
        self.tokens: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return None

    async def set_client_info(self, client_info: Any) -> None:
        raise AssertionError("the client is known and need not register")
