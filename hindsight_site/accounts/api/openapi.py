"""How the OpenAPI document says that a call needs a token. Found by drf-spectacular once imported."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class Token(OpenApiAuthenticationExtension):
    """What nearly every call takes."""

    target_class = "hindsight_site.accounts.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return _bearer("An ApiToken (hs_…), or the access token it was exchanged for.")


class ApiTokenOnly(OpenApiAuthenticationExtension):
    """What the exchange takes."""

    target_class = "hindsight_site.accounts.authentication.ApiTokenAuthentication"
    name = "apiToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return _bearer("An ApiToken (hs_…).")


def _bearer(description: str) -> dict[str, Any]:
    return {"type": "http", "scheme": "bearer", "description": description}
