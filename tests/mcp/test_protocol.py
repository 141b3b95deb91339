"""Messages, envelopes and headers: judged as the official SDK judges them, which the server does without."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY, jsonrpc

from hindsight_site.mcp import protocol
from hindsight_site.mcp.errors import Fault
from tests.mcp.caller import LEGACY, META, MODERN, OLDEST

VERSIONS = st.sampled_from([MODERN, LEGACY, OLDEST, "2025-03-26", "2099-01-01", "", None, 7])
METHODS = st.sampled_from(["tools/call", "tools/list", "resources/read", "server/discover", "initialize", "nope"])
NAMES = st.sampled_from(["a", "zürich", "", None])


def header_of(text: str | None) -> str | None:
    return None if text is None else inbound.encode_header_value(text)


@st.composite
def requests(draw):
    """A request with an envelope that is right, nearly right or missing, and headers likewise."""
    version, method, name = draw(VERSIONS), draw(METHODS), draw(NAMES)
    meta = draw(st.sampled_from([{}, None, {PROTOCOL_VERSION_META_KEY: version}, {
        PROTOCOL_VERSION_META_KEY: version, CLIENT_CAPABILITIES_META_KEY: {}
    }]))  # fmt: skip
    params = {"_meta": meta, "name": name, "uri": name}
    said_method = draw(st.sampled_from([method, "other", None]))
    said_version = draw(st.sampled_from([version, MODERN]))
    said_name = draw(st.sampled_from([header_of(name), "other", None, "=?base64?!!?="]))
    headers = {
        "mcp-protocol-version": said_version if isinstance(said_version, str) else None,
        "mcp-method": said_method,
        "mcp-name": said_name,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return body, {name: value for name, value in headers.items() if value is not None}


@given(requests())
def test_the_same_verdict_as_the_sdk(given_request) -> None:
    body, headers = given_request
    meta = body["params"]["_meta"] or {}
    modern = headers.get("mcp-protocol-version") == MODERN
    modern |= PROTOCOL_VERSION_META_KEY in meta and body["method"] != "initialize"
    try:
        request = protocol.read(body, headers)
        code = None
    except Fault as fault:
        request, code = None, fault.code
    if not modern:
        assert code in (None, jsonrpc.UNSUPPORTED_PROTOCOL_VERSION)
        assert request is None or request.version in (LEGACY, OLDEST)
        return
    theirs = inbound.classify_inbound_request(body, headers=headers)
    if isinstance(theirs, inbound.InboundLadderRejection):
        assert code == theirs.code
    else:
        assert request.version == theirs.protocol_version == MODERN


@given(st.text(max_size=40), st.booleans())
def test_headers_are_read_as_the_sdk_reads_them(text, encoded) -> None:
    header = inbound.encode_header_value(text) if encoded else text
    assert protocol.decoded(header) == inbound.decode_header_value(header)


@given(st.binary(max_size=12))
def test_encoded_headers_of_any_kind(raw) -> None:
    header = f"=?base64?{raw.decode('latin-1')}?="
    try:
        theirs = inbound.decode_header_value(header)
    except ValueError:
        theirs = None
    assert protocol.decoded(header) == theirs


@pytest.mark.parametrize("version", [LEGACY, OLDEST])
def test_a_request_of_the_older_kind(version) -> None:
    body = {"jsonrpc": "2.0", "id": "a", "method": "ping"}
    request = protocol.read(body, {"mcp-protocol-version": version})
    assert (request.id, request.version, request.params, request.is_modern) == ("a", version, {}, False)
    # A client that forgets the header is taken for the oldest kind.
    assert protocol.read(body, {}).version == OLDEST


@pytest.mark.parametrize("version", ["2025-03-26", "2024-11-05", "2099-01-01", "x"])
def test_a_revision_that_is_not_spoken_here(version) -> None:
    for body in ({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/x"}):
        with pytest.raises(Fault) as refusal:
            protocol.read(body, {"mcp-protocol-version": version})
        assert refusal.value.code == jsonrpc.UNSUPPORTED_PROTOCOL_VERSION
        assert refusal.value.data == {"supported": [MODERN, LEGACY, OLDEST], "requested": version}


@pytest.mark.parametrize(
    "body",
    [
        [], [{"jsonrpc": "2.0", "id": 1, "method": "ping"}], "ping", 7, None, {}, {"jsonrpc": "2.0"},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": {}, "method": "ping"}, {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, {"id": 1, "method": "ping"},
    ],
)  # fmt: skip
def test_what_is_no_message(body) -> None:
    for headers in ({}, {"mcp-protocol-version": LEGACY}, {"mcp-protocol-version": MODERN}):
        with pytest.raises(Fault) as refusal:
            protocol.read(body, headers)
        assert (refusal.value.code, refusal.value.status) == (jsonrpc.INVALID_REQUEST, 400)


def test_what_is_only_taken_note_of() -> None:
    for version in (MODERN, LEGACY, OLDEST):
        headers = {"mcp-protocol-version": version}
        assert protocol.read({"jsonrpc": "2.0", "method": "notifications/cancelled"}, headers) is None
    answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert protocol.read(answer, {"mcp-protocol-version": LEGACY}) is None
    with pytest.raises(Fault):
        protocol.read(answer, {"mcp-protocol-version": MODERN})


def test_initialize_is_of_the_older_kind_whatever_it_carries() -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"_meta": META}}
    assert protocol.read(body, {}).version == OLDEST
    assert protocol.read(body, {"mcp-protocol-version": "2024-11-05"}).version == OLDEST


def test_ids_that_errors_answer_to() -> None:
    assert [protocol.id_in({"id": ident}) for ident in (1, "a", -2)] == [1, "a", -2]
    assert [protocol.id_in({"id": ident}) for ident in (True, 1.5, None, [], "\ud800")] == [None] * 5
    assert protocol.id_in([]) is None
