"""What a client can find out before it has a token: our keys, our resources, who gives out tokens."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from hindsight_site.accounts import access_tokens, signing_keys
from hindsight_site.accounts.api.oauth import GRANTS
from hindsight_site.accounts.enums import Audience, TokenScope
from hindsight_site.accounts.permissions import DEFAULT_TOKEN_SCOPES

# Below `signing_keys.PUBLISHED_BEFORE_USE`, so that a kept key set has a key before it signs.
kept_briefly = cache_control(public=True, max_age=300)

NAMES = {Audience.REST: "Hindsight REST API", Audience.MCP: "Hindsight MCP"}
# Clients ask for all that is listed: for MCP what an agent's work needs, not the rights of an admin.
SCOPES: dict[Audience, list[str]] = {Audience.REST: TokenScope.values, Audience.MCP: [*DEFAULT_TOKEN_SCOPES]}


@require_safe
@kept_briefly
def jwks(request: HttpRequest) -> HttpResponse:
    """The public keys that access tokens are signed with (RFC 7517)."""
    return JsonResponse(signing_keys.published(), content_type="application/jwk-set+json")


@require_safe
@kept_briefly
def protected_resource(request: HttpRequest, audience: Audience) -> HttpResponse:
    """One of our resources and who gives out tokens for it (RFC 9728)."""
    return JsonResponse({
        "resource": access_tokens.resource(audience),
        "authorization_servers": [access_tokens.issuer()],
        "scopes_supported": SCOPES[audience],
        "bearer_methods_supported": ["header"],
        "resource_name": NAMES[audience],
        "resource_documentation": f"{settings.SITE_URL}/api/v1/docs",
    })  # fmt: skip


@require_safe
@kept_briefly
def authorization_server(request: HttpRequest) -> HttpResponse:
    """How to get a token here (RFC 8414). Lists what works, and nothing that is to come."""
    return JsonResponse({
        "issuer": access_tokens.issuer(),
        "authorization_endpoint": f"{settings.SITE_URL}/oauth/authorize",
        "token_endpoint": f"{settings.SITE_URL}/oauth/token",
        "jwks_uri": f"{settings.SITE_URL}/.well-known/jwks.json",
        "revocation_endpoint": f"{settings.SITE_URL}/oauth/revoke",
        "registration_endpoint": f"{settings.SITE_URL}/oauth/register",
        "scopes_supported": TokenScope.values,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": [*GRANTS],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": True,
        "service_documentation": f"{settings.SITE_URL}/api/v1/docs",
    })  # fmt: skip
