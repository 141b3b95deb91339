"""Addresses of tokens: the API's below /api/v1/, OAuth's and the metadata at the root."""

from django.urls import path

from hindsight_site.accounts.api import audit, metadata, oauth, tokens
from hindsight_site.accounts.api import openapi as openapi  # so that the document knows our tokens
from hindsight_site.accounts.enums import Audience

RESOURCE = ".well-known/oauth-protected-resource"

rest = [
    path("audit", audit.AuditView.as_view()),
    path("auth/token", tokens.ExchangeView.as_view()),
    path("tokens", tokens.TokensView.as_view()),
    path("tokens/<slug:prefix>", tokens.ManagedTokenView.as_view()),
    path("tokens/<slug:prefix>/rotate", tokens.RotateView.as_view()),
]

root = [
    path("oauth/token", oauth.token),
    path("oauth/authorize", oauth.authorize),
    path(".well-known/jwks.json", metadata.jwks),
    path(".well-known/oauth-authorization-server", metadata.authorization_server),
    # The plain address is where an MCP client looks when it does not know of the others.
    path(RESOURCE, metadata.protected_resource, {"audience": Audience.MCP}),
    path(f"{RESOURCE}/mcp", metadata.protected_resource, {"audience": Audience.MCP}),
    path(f"{RESOURCE}/api/v1", metadata.protected_resource, {"audience": Audience.REST}),
]
