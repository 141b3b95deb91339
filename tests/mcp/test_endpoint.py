"""The endpoint before any tool runs: where from, by which method, with which token, in which form."""

from __future__ import annotations

import json
import time
from datetime import timedelta

import jwt
import pytest
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hindsight_site.accounts import access_tokens, actions, credentials, limits, signing_keys
from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.enums import Audience, KeyState
from hindsight_site.accounts.models import ApiToken, SigningKey, Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.mcp.tools import TABLE
from tests import factories
from tests.mcp.caller import LEGACY, META, MODERN, OLDEST, McpCaller, access_token

pytestmark = pytest.mark.django_db
PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
METADATA = 'resource_metadata="http://127.0.0.1:8000/.well-known/oauth-protected-resource/mcp"'


def token_of(caller: McpCaller) -> ApiToken:
    with team_transaction(caller.team):
        return ApiToken.objects.of(caller.team).select_related("agent", "team").get(prefix=caller.secret[3:11])


def refused(answer, status: int) -> dict:
    """The error of an answer, which is JSON-RPC whatever its status."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/json"
    body = answer.json()
    assert set(body) == {"jsonrpc", "id", "error"}
    assert body["error"]["data"]["request_id"] == answer["X-Request-ID"]
    return body["error"]


# --- Where from, and by which method -----------------------------------------------------------------


@pytest.mark.parametrize("method", ["get", "delete", "put", "patch", "options", "head"])
def test_only_post(mcp, method) -> None:
    answer = getattr(mcp.http, method)("/mcp", headers={"Authorization": f"Bearer {mcp.token}"})
    assert (answer.status_code, answer["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "origin",
    ["http://evil.test", "https://127.0.0.1:8000", "http://127.0.0.1:8001", "null", "", "http://testserver.evil"],
)
def test_other_origins_are_refused_before_anything_else(mcp, origin) -> None:
    answer = Client().post("/mcp", PING, content_type="application/json", headers={"Origin": origin})
    assert "other web pages" in refused(answer, 403)["message"]


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8000", "http://testserver"])
def test_the_sites_own_pages(mcp, origin) -> None:
    assert mcp.post(PING, Origin=origin, Mcp_Protocol_Version=LEGACY).json()["result"] == {}


def test_a_host_that_is_not_ours(mcp, settings) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    assert mcp.post(PING, Host="evil.test", Origin="http://evil.test").status_code == 400


def test_a_cookie_opens_nothing(browse, alice) -> None:
    refused(browse(alice).post("/mcp", PING, content_type="application/json"), 401)


# --- Tokens ------------------------------------------------------------------------------------------


def challenge(mcp: McpCaller, token: str) -> tuple[str, dict]:
    """What an answer to `token` says in its header and its body."""
    mcp.token = token
    answer = mcp.post(PING, Mcp_Protocol_Version=LEGACY)
    error = refused(answer, 401)
    header = answer["WWW-Authenticate"]
    assert header.startswith(f"Bearer {METADATA}")
    assert header.isascii()
    return header.partition('error_description="')[2].rstrip('"'), error


def forged(mcp: McpCaller, algorithm: str | None = None, key=None, headers=None, **claims) -> str:
    """A token like the caller's with other claims; signed by us unless another key is given."""
    given = jwt.decode(mcp.token, options={"verify_signature": False}) | claims
    given = {name: value for name, value in given.items() if value is not None}
    signer = signing_keys.signer()
    algorithm = signing_keys.ALGORITHM if algorithm is None else algorithm
    head = {"kid": signer.kid, "typ": access_tokens.TYPE, **(headers or {})}
    return jwt.encode(given, signer.key if key is None else key, algorithm=algorithm, headers=head)


def test_no_token(mcp) -> None:
    answer = Client().post("/mcp", PING, content_type="application/json")
    error = refused(answer, 401)
    assert answer["WWW-Authenticate"] == f"Bearer {METADATA}"  # RFC 6750: no error for who sent nothing
    assert "auth/token" in error["message"]


@pytest.mark.parametrize("header", ["Bearer", "Bearer a b", "Basic eDp5", "x"])
def test_headers_of_another_kind(header) -> None:
    answer = Client().post("/mcp", PING, content_type="application/json", headers={"Authorization": header})
    assert 'error="invalid_token", error_description="malformed header"' in answer["WWW-Authenticate"]
    refused(answer, 401)


def test_an_api_token_must_be_exchanged(mcp) -> None:
    description, error = challenge(mcp, mcp.secret)
    assert description == "token not exchanged"
    assert "exchange it" in error["message"]
    unknown = challenge(mcp, "hs_aaaaaaaa_" + "A" * 43)
    assert (unknown[0], unknown[1]["message"]) == (description, error["message"])  # whether it exists is not told


def test_what_is_wrong_with_a_token_is_said(mcp) -> None:
    now = int(time.time())
    other_key = jwt.algorithms.OKPAlgorithm.from_jwk(json.dumps({
        "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
    }))  # fmt: skip
    good = mcp.token
    cases = {
        "token expired": forged(mcp, exp=now - 60, iat=now - 700, nbf=now - 700),
        "not yet valid": forged(mcp, nbf=now + 600),
        "wrong audience": access_token(mcp.team, mcp.secret, Audience.REST),
        "wrong issuer": forged(mcp, iss="http://elsewhere.test"),
        "bad signature": forged(mcp, key=other_key),
        "unknown key": forged(mcp, headers={"kid": "somebody-elses"}),
        "wrong algorithm": forged(mcp, algorithm="none", key=""),
        "missing claim": forged(mcp, exp=None),
        "wrong type": forged(mcp, headers={"typ": "JWT"}),
        "malformed token": good[:-10],
    }
    said = {expected: challenge(mcp, token)[0] for expected, token in cases.items()}
    assert {k: v for k, v in said.items() if k not in {"malformed token"}} == {
        k: k for k in cases if k not in {"malformed token"}
    }
    assert said["malformed token"] in {"malformed token", "bad signature"}
    assert challenge(mcp, "nonsense")[0] == "malformed token"
    assert challenge(mcp, "a.b.c")[0] == "malformed token"
    assert challenge(mcp, "é.b.c")[0] == "malformed token"
    odd_key = jwt.utils.base64url_encode(b'{"alg": "EdDSA", "kid": ["x"], "typ": "at+jwt"}').decode()
    assert challenge(mcp, f"{odd_key}.e30.AAAA")[0] == "malformed token"
    mcp.token = good
    assert mcp.ask("server/discover")


def test_a_symmetric_signature_with_our_public_key(mcp) -> None:
    """The attack that fixed algorithms are against: our public key used as a shared secret."""
    public = signing_keys.published()["keys"][0]["x"]
    assert challenge(mcp, forged(mcp, algorithm="HS256", key=public.ljust(64)))[0] == "wrong algorithm"


@pytest.mark.parametrize("what", ["token", "agent", "team", "expiry"])
def test_what_is_switched_off_stops_at_once(mcp, what) -> None:
    assert mcp.ask("server/discover")
    token = token_of(mcp)
    with team_transaction(mcp.team):
        if what == "token":
            actions.revoke_token(team=mcp.team, by=SYSTEM, token=token)
        elif what == "agent":
            actions.change_agent(team=mcp.team, by=SYSTEM, agent=mcp.agent, disabled=True)
        elif what == "expiry":
            ApiToken.objects.of(mcp.team).filter(pk=token.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
        else:
            Team.objects.filter(pk=mcp.team.pk).update(suspended_at=timezone.now())
    said = {"token": "token revoked", "agent": "agent disabled", "team": "team suspended", "expiry": "token expired"}
    assert challenge(mcp, mcp.token)[0] == said[what]


def test_a_retired_key(mcp) -> None:
    SigningKey.objects.update(state=KeyState.RETIRED)
    assert challenge(mcp, mcp.token)[0] == "unknown key"


def test_a_use_is_noted(mcp) -> None:
    mcp.ask("server/discover")
    assert token_of(mcp).last_used_at is not None


# --- Scopes ------------------------------------------------------------------------------------------

NEEDED = {
    "hindsight_recall": "memory:read", "hindsight_remember": "memory:write", "hindsight_record_trace": "trace:write",
    "hindsight_reflect": "reflect", "hindsight_status": "memory:read", "hindsight_feedback": "memory:write",
    "hindsight_forget": "memory:write", "hindsight_get": "memory:read",
}  # fmt: skip


@pytest.mark.parametrize("version", [MODERN, LEGACY])
def test_every_tool_asks_for_its_scope(team, agent, version) -> None:
    assert {name: str(tool.scope) for name, tool in TABLE.items()} == NEEDED
    for name, scope in NEEDED.items():
        narrow = McpCaller(team, agent, [s for s in factories.ALL_SCOPES if s != scope], version)
        answer = narrow.send("tools/call", {"name": name, "arguments": {}})
        error = refused(answer, 403)
        assert scope in error["message"]
        assert error["data"]["scope"] == scope
        assert f'error="insufficient_scope", scope="{scope}"' in answer["WWW-Authenticate"]
        assert answer.json()["id"] == 1
        wide = McpCaller(team, agent, [scope], version)
        assert wide.send("tools/call", {"name": name, "arguments": {}}).status_code == 200


def test_deleting_needs_admin(agent) -> None:
    memory = factories.memory(agent)
    writer = McpCaller(agent.team, agent, ["memory:write", "memory:read"])
    arguments = {"memory_id": str(memory.pk), "action": "DELETE"}
    error = refused(writer.send("tools/call", {"name": "hindsight_forget", "arguments": arguments}), 403)
    assert error["data"]["scope"] == "admin"
    assert writer.call("hindsight_forget", memory_id=str(memory.pk), action="archive")["status"] == "archived"


def test_reading_resources_needs_a_scope(agent) -> None:
    writer = McpCaller(agent.team, agent, ["memory:write"])
    refused(writer.send("resources/read", {"uri": "hindsight://scopes"}), 403)
    assert writer.ask("resources/list")["resources"]
    assert writer.ask("prompts/list")["prompts"]


def test_an_access_token_with_fewer_scopes(mcp) -> None:
    mcp.token = access_token(mcp.team, mcp.secret, scopes=["memory:read"])
    assert mcp.send("tools/call", {"name": "hindsight_remember", "arguments": {"content": "x"}}).status_code == 403


# --- Rate limits -------------------------------------------------------------------------------------


def test_too_many_requests(mcp, settings) -> None:
    settings.RATE_LIMIT_TOKEN_PER_MINUTE, settings.RATE_LIMIT_TOKEN_BURST = 60, 2
    first = mcp.send("server/discover")
    assert (first.status_code, first["RateLimit-Remaining"]) == (200, "1")
    mcp.send("server/discover")
    answer = mcp.send("server/discover")
    limits.close()
    error = refused(answer, 429)
    assert int(answer["Retry-After"]) == error["data"]["retry_after"] >= 1
    assert answer["RateLimit-Remaining"] == "0"


# --- Form --------------------------------------------------------------------------------------------


def test_content_types(mcp) -> None:
    assert refused(mcp.post(PING, Content_Type="text/plain"), 415)
    assert refused(mcp.post(PING, Accept="text/html"), 406)
    for accept in ("application/json", "*/*", "application/*;q=0.5, text/event-stream", None):
        assert mcp.post(PING, Accept=accept, Mcp_Protocol_Version=LEGACY).status_code == 200
    answer = mcp.post(PING, Content_Type="application/json; charset=utf-8", Mcp_Protocol_Version=LEGACY)
    assert answer.json() == {"jsonrpc": "2.0", "id": 7, "result": {}}


@pytest.mark.parametrize(
    "body",
    [
        b" ",
        b"{",
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"id": ' + b"9" * 5000 + b"}",
        "nul\x00",
    ],
)
def test_what_is_not_json(mcp, body) -> None:
    error = refused(mcp.post(body, Mcp_Protocol_Version=LEGACY), 400)
    assert error["code"] == -32700


def test_too_large(mcp, settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    assert "1,000 bytes" in refused(mcp.post(b" " * 1001), 413)["message"]


def test_batches_are_refused_in_every_revision(mcp) -> None:
    for version in (MODERN, LEGACY, OLDEST):
        assert refused(mcp.post([PING, PING], Mcp_Protocol_Version=version), 400)["code"] == -32600


def test_notifications_are_accepted(mcp) -> None:
    for version in (MODERN, LEGACY, OLDEST):
        for method in ("notifications/initialized", "notifications/cancelled", "notifications/unheard_of"):
            body = {"jsonrpc": "2.0", "method": method, "params": {"requestId": 1, "reason": "no more"}}
            answer = mcp.post(body, Mcp_Protocol_Version=version)
            assert (answer.status_code, answer.content) == (202, b"")


def test_headers_must_say_what_the_body_says(mcp) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
    right = {"Mcp_Protocol_Version": MODERN, "Mcp_Method": "tools/list"}
    assert mcp.post(body, **right).status_code == 200
    for wrong in ({"Mcp_Method": "tools/call"}, {"Mcp_Method": None}, {"Mcp_Protocol_Version": LEGACY}):
        assert refused(mcp.post(body, **{**right, **wrong}), 400)["code"] == -32020
    call = {**body, "method": "tools/call", "params": {"_meta": META, "name": "hindsight_recall"}}
    assert refused(mcp.post(call, Mcp_Protocol_Version=MODERN, Mcp_Method="tools/call"), 400)["code"] == -32020


def test_unknown_methods(any_mcp) -> None:
    fault = any_mcp.fault("tools/unheard_of")
    assert (fault["code"], fault["status"]) == (-32601, 404 if any_mcp.version == MODERN else 200)
    for method in ("logging/setLevel", "completion/complete", "resources/subscribe", "subscriptions/listen"):
        assert any_mcp.fault(method, {"level": "info"})["code"] in (-32601, -32602)
    missing = "ping" if any_mcp.version == MODERN else "server/discover"
    assert any_mcp.fault(missing)["code"] == -32601


def test_wrong_parameters(any_mcp) -> None:
    for method, params in (
        ("tools/call", {}),
        ("tools/call", {"name": None}),
        ("tools/call", {"name": "hindsight_recall", "arguments": "x"}),
        ("tools/call", {"name": "no_such_tool"}),
        ("prompts/get", {"name": "no_such_prompt"}),
        ("tools/list", {"cursor": "abc"}),
    ):
        fault = any_mcp.fault(method, params)
        assert fault["code"] == -32602, (method, params)
        assert fault["status"] == (400 if any_mcp.version == MODERN else 200)


# --- Beginning ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "given"), [(LEGACY, LEGACY), (OLDEST, OLDEST), ("2024-11-05", LEGACY), (MODERN, LEGACY), ("x", LEGACY)]
)
def test_initialize(mcp, asked, given) -> None:
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    answer = mcp.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    assert "Mcp-Session-Id" not in answer
    result = answer.json()["result"]
    assert result["protocolVersion"] == given
    assert result["serverInfo"]["name"] == "hindsight"
    assert set(result["capabilities"]) == {"tools", "resources", "prompts", "completions"}
    assert "hindsight_recall" in result["instructions"]


def test_discover(mcp) -> None:
    result = mcp.ask("server/discover")
    assert result["supportedVersions"] == [MODERN, LEGACY, OLDEST]
    assert (result["resultType"], result["cacheScope"]) == ("complete", "public")
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "hindsight"


def test_tools_as_listed(any_mcp) -> None:
    listed = any_mcp.ask("tools/list")
    tools = {tool["name"]: tool for tool in listed["tools"]}
    assert set(tools) == set(NEEDED)
    for name, tool in tools.items():
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert len(tool["description"]) > 80
        assert tool["annotations"]["openWorldHint"] is False, name
        assert all("description" in schema for schema in tool["inputSchema"]["properties"].values()), name
    hints = {name: tool["annotations"] for name, tool in tools.items()}
    assert {name for name, hint in hints.items() if hint["destructiveHint"]} == {"hindsight_forget"}
    assert {name for name, hint in hints.items() if hint["readOnlyHint"]} == {
        "hindsight_recall", "hindsight_status", "hindsight_get"
    }  # fmt: skip
    assert ("ttlMs" in listed) == (any_mcp.version == MODERN)


# --- Nothing breaks it -------------------------------------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=6
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(sorted({name for tool in TABLE.values() for name in tool.input_schema["properties"]} | {"zzz"})),
    JSON | st.sampled_from(["fact", "0199a3b2-5d21-7b0a-8c77-1e9f4a6b2c33", [{"role": "tool"}], [{"memory": "x"}]]),
    max_size=5,
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(sorted(TABLE)) | SCALARS,
        "arguments": ARGUMENTS | JSON,
        "uri": st.sampled_from(["hindsight://scopes", "hindsight://memory/x", "http://[", ""]) | SCALARS,
        "cursor": SCALARS,
        "protocolVersion": SCALARS,
        "_meta": st.sampled_from([META, {}, {"hindsight/idempotency_key": [1]}]) | JSON,
    },
)
METHODS = (
    st.sampled_from(["tools/call"] * 4 + ["resources/read", "prompts/get", "initialize", "tools/list"]) | st.text()
)
BODIES = JSON | st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | SCALARS, "method": METHODS | SCALARS},
    optional={"id": st.integers(0, 9) | SCALARS, "params": PARAMS | JSON},
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BODIES, st.sampled_from([MODERN, LEGACY, OLDEST, None, "x"]), st.booleans())
def test_no_message_breaks_it(mcp, body, version, complete) -> None:
    """Whatever is sent is answered in the protocol's form, and never with a server error."""
    headers = {"Mcp_Protocol_Version": version}
    if complete and isinstance(body, dict) and isinstance(body.get("params"), dict) and version == MODERN:
        body["params"]["_meta"] = META
        name = body["params"].get("name") or body["params"].get("uri")
        method = body.get("method")
        headers["Mcp_Method"] = method if isinstance(method, str) and method.isascii() and method.isprintable() else "x"
        headers["Mcp_Name"] = name if isinstance(name, str) and name.isascii() and name.isprintable() else "x"
    answer = mcp.post(body, **headers)
    assert answer.status_code < 500, body
    if answer.status_code == 202:
        return
    told = answer.json()
    assert told["jsonrpc"] == "2.0"
    assert ("error" in told) != ("result" in told)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(TABLE)), ARGUMENTS)
def test_no_arguments_break_a_tool(mcp, name, arguments) -> None:
    """A tool answers or says what is wrong, whatever its arguments."""
    arguments.pop("wait_seconds", None)
    answer = mcp.send("tools/call", {"name": name, "arguments": arguments})
    assert answer.status_code in (200, 403), (name, arguments)
    if answer.status_code == 200:
        result = answer.json()["result"]
        assert result["content"][0]["text"]
        assert result.get("isError") or "structuredContent" in result


def test_credentials_module_is_not_asked_for_hs_tokens(mcp, django_assert_num_queries) -> None:
    """An ApiToken is refused by its form, so that nothing can be learnt about it here."""
    assert credentials.SECRET.fullmatch(mcp.secret)
    mcp.token = mcp.secret
    with django_assert_num_queries(0):
        assert mcp.post(PING).status_code == 401
