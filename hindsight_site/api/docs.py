"""The OpenAPI document and a browsable reference whose assets we serve ourselves."""

from __future__ import annotations

from csp.decorators import csp_update
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiJsonRenderer2, OpenApiYamlRenderer
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

schema = SpectacularAPIView.as_view(
    authentication_classes=[],
    permission_classes=[],
    renderer_classes=[OpenApiJsonRenderer, OpenApiJsonRenderer2, OpenApiYamlRenderer],
)

# Swagger UI writes style attributes; its script comes in a file of ours.
reference = csp_update({"style-src": ["'unsafe-inline'"]})(
    SpectacularSwaggerSplitView.as_view(
        url_name="api-schema", authentication_classes=[], permission_classes=[], template_name="api_docs.html"
    )
)
