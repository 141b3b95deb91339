"""MCP clients that people have connected: the permission, and the secrets it is used with, as hashes.

Imported by `models`, which is where everything else takes them from. Written by `connected_clients` only.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from hindsight_site.accounts.tenancy import TeamForeignKey, TenantModel, team_never_changes, tenant_constraints


class ConnectedClient(TenantModel):
    """A person lets one client work as one agent of one team.

    What it may, until when, and whether it was disconnected is said by its token, whose secret nobody has.
    """

    token = TeamForeignKey("accounts.ApiToken", on_delete=models.CASCADE, related_name="+")
    client_id = models.TextField()
    client_name = models.CharField(max_length=120)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            *tenant_constraints("connectedclient", token="accounts_apitoken"),  # noqa: S106 - a table name
            models.UniqueConstraint(fields=["team", "token"], name="connectedclient_token"),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return self.client_name


class AuthorizationCode(TenantModel):
    """What a person allowed, between their consent and the client's exchange of the code (RFC 6749, 4.1.2)."""

    digest = models.BinaryField(max_length=32)  # SHA-256 of the whole code
    person = models.ForeignKey("accounts.User", on_delete=models.CASCADE, related_name="+", db_index=False)
    agent = TeamForeignKey("accounts.Agent", on_delete=models.CASCADE, related_name="+")
    scopes = ArrayField(models.CharField(max_length=20))
    client_id = models.TextField()
    client_name = models.CharField(max_length=120)
    redirect_uri = models.TextField()
    challenge = models.CharField(max_length=43)  # PKCE, S256
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    connected = TeamForeignKey(ConnectedClient, on_delete=models.CASCADE, null=True, blank=True, related_name="+")

    class Meta:
        constraints = [
            *tenant_constraints("authorizationcode", agent="accounts_agent", connected="accounts_connectedclient"),
            models.UniqueConstraint(fields=["team", "digest"], name="authorizationcode_digest"),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.client_name}, {self.created_at:%Y-%m-%d %H:%M}"


class RefreshToken(TenantModel):
    """One link of a connected client's chain of refresh tokens: used once, then the next one counts."""

    digest = models.BinaryField(max_length=32)  # SHA-256 of the whole token
    connected = TeamForeignKey(ConnectedClient, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            *tenant_constraints("refreshtoken", connected="accounts_connectedclient"),
            models.UniqueConstraint(fields=["team", "digest"], name="refreshtoken_digest"),
        ]
        indexes = [models.Index(fields=["team", "connected", "expires_at"], name="refreshtoken_chain")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.connected_id}, {self.created_at:%Y-%m-%d %H:%M}"
