"""Addresses of tokens: the API's below /api/v1/, OAuth's and the metadata at the root."""

from django.urls import path

from hindsight_site.accounts.api import audit, authorize, grants, jobs, metadata, tokens, webhooks
from hindsight_site.accounts.api import openapi as openapi  # so that the document knows our tokens
from hindsight_site.accounts.enums import Audience

RESOURCE = ".well-known/oauth-protected-resource"

rest = [
    path("audit", audit.AuditView.as_view()),
    path("jobs", jobs.JobsView.as_view()),
    path("jobs/<uuid:job_id>", jobs.JobView.as_view()),
    path("jobs/<uuid:job_id>/cancel", jobs.CancelView.as_view()),
    path("webhooks", webhooks.WebhooksView.as_view()),
    path("webhooks/callback-secret", webhooks.CallbackSecretView.as_view()),
    path("webhooks/<uuid:webhook_id>", webhooks.WebhookView.as_view()),
    path("webhooks/<uuid:webhook_id>/secret", webhooks.WebhookSecretView.as_view()),
    path("webhooks/<uuid:webhook_id>/ping", webhooks.WebhookPingView.as_view()),
    path("webhooks/<uuid:webhook_id>/deliveries", webhooks.DeliveriesView.as_view()),
    path("deliveries", webhooks.AllDeliveriesView.as_view()),
    path("deliveries/<uuid:delivery_id>", webhooks.DeliveryView.as_view()),
    path("deliveries/<uuid:delivery_id>/redeliver", webhooks.RedeliverView.as_view()),
    path("auth/token", tokens.ExchangeView.as_view()),
    path("tokens", tokens.TokensView.as_view()),
    path("tokens/<slug:prefix>", tokens.ManagedTokenView.as_view()),
    path("tokens/<slug:prefix>/rotate", tokens.RotateView.as_view()),
]

root = [
    path("oauth/token", grants.token),
    # Where the official client renews after a restart: it keeps its tokens, and not where they came from.
    path("token", grants.token),
    path("oauth/authorize", authorize.authorize, name="authorize"),
    path("oauth/revoke", grants.revoke),
    path("oauth/register", grants.register),
    path(".well-known/jwks.json", metadata.jwks),
    path(".well-known/oauth-authorization-server", metadata.authorization_server),
    # The plain address is where an MCP client looks when it does not know of the others.
    path(RESOURCE, metadata.protected_resource, {"audience": Audience.MCP}),
    path(f"{RESOURCE}/mcp", metadata.protected_resource, {"audience": Audience.MCP}),
    path(f"{RESOURCE}/api/v1", metadata.protected_resource, {"audience": Audience.REST}),
]
