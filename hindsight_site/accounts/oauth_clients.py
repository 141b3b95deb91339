"""Who asks for a person's permission: an MCP client, known by its metadata document or by its registration.

A client is public: it has no secret, and proves with PKCE that the one who redeems a code is the one who
asked for it. Neither kind leaves a row here. A `client_id` that is an https address names the document that
describes the client (draft-ietf-oauth-client-id-metadata-document). Any other was made by `register`
(RFC 7591) and carries its description itself, signed by us, so that strangers cannot fill the database.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.core import signing
from django.core.cache import caches

from hindsight_site import outbound

MAX_NAME = 120  # characters
MAX_URIS = 10
MAX_URI = 400  # characters
MAX_ID = 1_500  # characters; it travels in addresses, and twice encoded past the log-in
MAX_DOCUMENT = 16 * 1024  # bytes; the draft advises 5 KB
FETCH_SECONDS = 5.0
KEPT_SECONDS = 600
LOOPBACK = frozenset({"127.0.0.1", "[::1]", "localhost"})
SALT = "hindsight oauth client"
GRANTS = frozenset({"authorization_code", "refresh_token"})

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
# A host goes into the consent page's policy as it stands, where ";" and "*" mean something.
_HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")


class BadClient(Exception):
    """There is no such client, or its description will not do. The message is for people, in ASCII.

    `code` is a word of RFC 7591, section 3.2.2.
    """

    def __init__(self, message: str, code: str = "invalid_client_metadata") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Client:
    """A client: what it calls itself and where it may be answered.

    `host` is who vouches for the name: the host of its document; "" when nobody does.
    """

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    host: str = ""

    def may_be_answered_at(self, uri: str) -> bool:
        """Whether `uri` is one of the registered addresses: the same string, or on loopback the same but
        for the port, which a native program gets anew at each start (RFC 8252, section 7.3).
        """
        return any(uri == own or _same_on_loopback(uri, own) for own in self.redirect_uris)


def find(client_id: str) -> Client:
    """Return the client that an id stands for. May fetch its document. Raises `BadClient`."""
    if client_id.startswith("https://"):
        return _from_document(client_id)
    try:
        found = signing.loads(client_id.removeprefix("hsc."), salt=SALT)
    except signing.BadSignature:
        raise BadClient("This client is not known here: it must register again.", "invalid_client") from None
    return Client(client_id, found["n"], tuple(found["u"]))


def register(metadata: Any) -> Client:
    """Give a client an id (RFC 7591). Raises `BadClient`."""
    name, uris = describe(metadata)
    client_id = "hsc." + signing.dumps({"n": name, "u": uris}, salt=SALT, compress=True)
    if len(client_id) > MAX_ID:
        raise BadClient("client_name and redirect_uris are too long together.")
    return Client(client_id, name, uris)


def describe(metadata: Any) -> tuple[str, tuple[str, ...]]:
    """Check a client's metadata and return its name and redirect addresses. Raises `BadClient`. Pure."""
    if not isinstance(metadata, dict):
        raise BadClient("Client metadata are a JSON object.")
    uris = metadata.get("redirect_uris")
    if not isinstance(uris, list) or not 1 <= len(uris) <= MAX_URIS:
        raise BadClient(f"redirect_uris must list 1 to {MAX_URIS} addresses.", "invalid_redirect_uri")
    for uri in uris:
        check_redirect_uri(uri)
    for field, known in (("grant_types", GRANTS), ("response_types", {"code"})):
        wanted = metadata.get(field, [])
        if not isinstance(wanted, list) or (wanted and not known & {str(word) for word in wanted}):
            raise BadClient(f"{field} must hold one of: {' '.join(sorted(known))}.")
    name = metadata.get("client_name", "")
    if not isinstance(name, str):
        raise BadClient("client_name must be text.")
    # Invisible characters and line ends could make a name look like another or like a line of ours.
    clean = " ".join("".join(c if c.isprintable() else " " for c in name).split())[:MAX_NAME]
    return clean or "A client without a name", tuple(dict.fromkeys(uris))


def check_redirect_uri(uri: Any) -> None:
    """Raise `BadClient` unless `uri` is absolute, without fragment, and where an answer is safe: https, http on
    loopback, or a scheme of an app's own (RFC 8252, section 7).
    """
    if (
        not isinstance(uri, str)
        or len(uri) > MAX_URI
        or not uri.isascii()
        or any(c <= " " or c in '\\"<>' for c in uri)
    ):
        raise BadClient(f"A redirect address is ASCII text of at most {MAX_URI} characters.", "invalid_redirect_uri")
    parts = _split(uri)
    if parts is None or not _SCHEME.fullmatch(parts.scheme) or "#" in uri or "@" in parts.netloc:
        raise BadClient("A redirect address is absolute, without fragment and user name.", "invalid_redirect_uri")
    if parts.scheme == "https" and _HOST.fullmatch(host_of(parts)):
        return
    if parts.scheme == "http" and host_of(parts) in LOOPBACK:
        return
    own = "." in parts.scheme or parts.scheme in settings.OAUTH_REDIRECT_SCHEMES
    if parts.scheme in {"http", "https"} or not own:
        raise BadClient(
            "A redirect address uses https, http on 127.0.0.1, [::1] or localhost, or an app's own scheme "
            "(com.example.app:/callback).",
            "invalid_redirect_uri",
        )


def host_of(parts: SplitResult) -> str:
    """The host without its port, as it stands in the address."""
    return re.sub(r":\d*$", "", parts.netloc).lower()


def _same_on_loopback(uri: str, own: str) -> bool:
    try:
        check_redirect_uri(uri)
    except BadClient:
        return False
    left, right = _split(uri), _split(own)
    if left is None or right is None:
        return False
    if {left.scheme, right.scheme} != {"http"} or host_of(left) not in LOOPBACK:
        return False
    return (host_of(left), left.path, left.query) == (host_of(right), right.path, right.query)


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises for one that is none
    except ValueError:
        return None
    return parts


def _from_document(client_id: str) -> Client:
    """Fetch the document at `client_id`, or take the kept copy."""
    check_document_address(client_id)
    key = f"oauth-client-{hashlib.sha256(client_id.encode()).hexdigest()}"
    kept = caches["process"].get(key)
    if kept is None:
        kept = _fetch(client_id)
        caches["process"].set(key, kept, KEPT_SECONDS)
    name, uris = kept
    return Client(client_id, name, uris, host=urlsplit(client_id).netloc.lower())


def check_document_address(client_id: str) -> None:
    """Raise `BadClient` unless `client_id` may name a document: https, a path without dot segments, no fragment,
    no user name (section 3 of the draft).
    """
    parts = _split(client_id)
    segments = parts.path.split("/") if parts else []
    if (
        parts is None
        or len(client_id) > MAX_URI
        or not client_id.isascii()
        or len(parts.path) < 2
        or {".", ".."} & {segment.lower().replace("%2e", ".") for segment in segments}
        or "#" in client_id
        or "@" in parts.netloc
    ):
        raise BadClient("This client_id is not the address of a client's metadata document.", "invalid_client")


def _fetch(client_id: str) -> tuple[str, tuple[str, ...]]:
    try:
        answer = outbound.send(
            client_id,
            method="GET",
            headers={"Accept": "application/json"},
            timeout_seconds=FETCH_SECONDS,
            max_bytes=MAX_DOCUMENT,
        )
    except (outbound.NotAllowed, outbound.Unreachable) as error:
        raise BadClient(f"The client's metadata document could not be read. {error}") from None
    media = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if answer.status != 200 or answer.is_cut or not (media == "application/json" or media.endswith("+json")):
        raise BadClient(f"There is no client metadata document at {client_id} (status {answer.status}).")
    try:
        metadata = json.loads(answer.body)
    except (ValueError, RecursionError):
        raise BadClient("The client's metadata document is not JSON.") from None
    described = describe(metadata)
    if metadata.get("client_id") != client_id:
        raise BadClient("The client's metadata document is another client's.")
    if metadata.get("token_endpoint_auth_method", "none") != "none" or "client_secret" in metadata:
        raise BadClient("The client wants to authenticate at the token endpoint; only public clients are served.")
    return described
