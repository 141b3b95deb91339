"""`/oauth/authorize`: a person lets an MCP client work as one of a team's agents, or does not.

RFC 6749, section 4.1; PKCE with S256 is required (RFC 7636); the answer names its issuer (RFC 9207); `resource`
is the MCP endpoint (RFC 8707). As long as it is not certain that the redirect address is the client's, a mistake
is shown here and nobody is sent anywhere (section 4.1.2.1). Every request of the client's asks anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from hindsight_site.accounts import access_tokens, connected_clients, oauth_clients
from hindsight_site.accounts.api.metadata import SCOPES
from hindsight_site.accounts.api.oauth import OAuthError
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.connected_clients import CHALLENGE
from hindsight_site.accounts.enums import Audience, TokenScope
from hindsight_site.accounts.models import Agent, Membership
from hindsight_site.accounts.oauth_clients import LOOPBACK, BadClient, Client, host_of
from hindsight_site.accounts.pages import current_membership
from hindsight_site.accounts.permissions import TOKEN_SCOPES
from hindsight_site.accounts.tenancy import enter_team
from hindsight_site.accounts.token_views import WHAT_SCOPES_OPEN
from hindsight_site.refusals import Refused

ONCE = ("client_id", "redirect_uri", "response_type", "state", "scope", "code_challenge", "code_challenge_method")
MAX_STATE = 2_000  # characters; it comes back in an address


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks of a person, checked."""

    client: Client
    redirect_uri: str
    state: str
    challenge: str
    scopes: frozenset[str]

    def back(self, **answer: str) -> HttpResponse:
        """Send the person's browser back to the client."""
        return _back(self.redirect_uri, self.state, answer)

    @property
    def goes_to(self) -> str:
        """Where the answer goes, in words for the person."""
        parts = urlsplit(self.redirect_uri)
        if parts.scheme == "https":
            return parts.netloc
        return "a program on this computer" if host_of(parts) in LOOPBACK else f"an app on this device ({parts.scheme})"

    @property
    def form_action(self) -> str:
        """What the page's Content-Security-Policy must allow: browsers hold the redirect of a form to it too."""
        parts = urlsplit(self.redirect_uri)
        # A policy cannot name an IPv6 address.
        named = parts.scheme in {"http", "https"} and "[" not in parts.netloc
        return f"{parts.scheme}://{parts.netloc}" if named else f"{parts.scheme}:"


# The client's document is fetched outside any transaction; the page itself is one.
@transaction.non_atomic_requests
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def authorize(request: HttpRequest) -> HttpResponse:
    """Ask the person (GET), and act on their answer (POST)."""
    try:
        client, redirect_uri = _whom_to_answer(request.GET)
    except BadClient as error:
        return render(request, "accounts/authorize_refused.html", {"reason": str(error)}, status=400)
    state = request.GET.get("state", "") if len(request.GET.getlist("state")) < 2 else ""
    try:
        asked = read(request.GET, client, redirect_uri, state)
    except OAuthError as error:
        return _back(redirect_uri, state, {"error": error.error, "error_description": error.description})
    with transaction.atomic():
        return _decide(request, asked)


def _whom_to_answer(query: QueryDict) -> tuple[Client, str]:
    """The client, and its redirect address as registered. Raises `BadClient`."""
    for name in ("client_id", "redirect_uri"):
        if len(query.getlist(name)) != 1 or not query[name]:
            raise BadClient(f"The client must send {name}, once.")
    client, redirect_uri = oauth_clients.find(query.get("client_id", "")), query.get("redirect_uri", "")
    if not client.may_be_answered_at(redirect_uri):
        raise BadClient("The address that the client wants the answer at (redirect_uri) is not one it has registered.")
    return client, redirect_uri


def read(query: QueryDict, client: Client, redirect_uri: str, state: str) -> Asked:
    """Check the rest of a request. Raises `OAuthError`, which may be sent to the client."""
    if any(len(query.getlist(name)) > 1 for name in ONCE):
        raise OAuthError("invalid_request", "A parameter was sent more than once.")
    if len(state) > MAX_STATE:
        raise OAuthError("invalid_request", f"state is longer than {MAX_STATE} characters.")
    if query.get("response_type") != "code":
        code = "unsupported_response_type" if query.get("response_type") else "invalid_request"
        raise OAuthError(code, "response_type must be code.")
    challenge = query.get("code_challenge", "")
    if query.get("code_challenge_method") != "S256" or not CHALLENGE.fullmatch(challenge):
        raise OAuthError("invalid_request", "PKCE is required: send a code_challenge of the method S256.")
    ours = access_tokens.resource(Audience.MCP)
    if {address.rstrip("/") for address in query.getlist("resource")} - {ours}:
        raise OAuthError("invalid_target", f"resource must be {ours}.")
    wanted = frozenset(query.get("scope", "").split())
    # Clients also ask for scopes of other servers (offline_access); what is granted is said in the answer.
    known = wanted & frozenset(TokenScope.values) if wanted else frozenset(SCOPES[Audience.MCP])
    if not known:
        raise OAuthError("invalid_scope", f"scope must hold some of: {' '.join(TokenScope.values)}.")
    return Asked(client, redirect_uri, state, challenge, known)


def _decide(request: HttpRequest, asked: Asked) -> HttpResponse:
    membership = _membership(request)
    if membership is None:
        return render(request, "accounts/no_team.html", status=403)
    request.membership, request.team = membership, membership.team  # type: ignore[attr-defined]
    enter_team(membership.team)
    if request.method == "GET":
        return _ask(request, asked)
    if request.POST.get("decision") != "allow":
        return asked.back(error="access_denied", error_description="The person did not allow it.")
    try:
        return asked.back(code=_allow(request, membership, asked))
    except Refused as refusal:
        return _ask(request, asked, refusal)


def _membership(request: HttpRequest) -> Membership | None:
    """The membership of the team that was chosen on the page; before that, of the one the person works in."""
    present = current_membership(request)
    chosen = (request.POST if request.method == "POST" else request.GET).get("team", "")
    mine: list[Membership] = request.memberships  # type: ignore[attr-defined] # all, as `current_membership` found
    return next((membership for membership in mine if str(membership.team_id) == chosen), None if chosen else present)


def _allow(request: HttpRequest, membership: Membership, asked: Asked) -> str:
    user = membership.user
    agent = _agents(membership).filter(slug=request.POST.get("agent", "")).first()
    if agent is None:
        raise Refused("Choose one of the agents.")
    return connected_clients.allow(
        team=membership.team,
        by=person(user),
        person=user,
        agent=agent,
        client=asked.client,
        redirect_uri=asked.redirect_uri,
        challenge=asked.challenge,
        scopes=request.POST.getlist("scopes"),
        allowed=_offered(membership, asked),
    )


def _offered(membership: Membership, asked: Asked) -> frozenset[str]:
    """What the client asks for and the person's role has."""
    return asked.scopes & TOKEN_SCOPES[membership.role]


def _agents(membership: Membership) -> Any:
    return Agent.objects.of(membership.team).filter(disabled_at=None).order_by("name", "id")


def _ask(request: HttpRequest, asked: Asked, refusal: Refused | None = None) -> HttpResponse:
    membership: Membership = request.membership  # type: ignore[attr-defined]
    offered = _offered(membership, asked)
    chosen = request.POST.getlist("scopes") if refusal else offered
    words = [(scope.value, WHAT_SCOPES_OPEN[scope], scope.value in chosen) for scope in TokenScope if scope in offered]
    context = {
        "asked": asked,
        "scopes": words,
        "beyond": [WHAT_SCOPES_OPEN[scope] for scope in TokenScope if scope in asked.scopes - offered],
        "agents": list(_agents(membership)[:500]),
        "chosen_agent": request.POST.get("agent", ""),
        "kept": [(name, value) for name, values in request.GET.lists() if name != "team" for value in values],
        "refusal": refusal,
    }
    with timezone.override(membership.user.time_zone):
        page = render(request, "accounts/authorize.html", context, status=refusal.status if refusal else 200)
    page._csp_update = {"form-action": [asked.form_action]}  # type: ignore[attr-defined] # django-csp reads it
    return page


def _back(redirect_uri: str, state: str, answer: dict[str, str]) -> HttpResponse:
    """303, so that a browser does not send the form on to the client (RFC 9700, section 4.12)."""
    fields = {**answer, **({"state": state} if state else {}), "iss": access_tokens.issuer()}
    joint = "&" if urlsplit(redirect_uri).query else "?"
    location = f"{redirect_uri.removesuffix('?')}{joint}{urlencode(fields)}"
    return HttpResponse(status=303, headers={"Location": location, "Cache-Control": "no-store"})
