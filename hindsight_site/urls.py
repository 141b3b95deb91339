"""Where everything is. The API below /api/v1/, pages at the root, health outside both."""

from django.contrib import admin
from django.urls import include, path

from hindsight_site import health, overview
from hindsight_site.accounts.api import urls as token_urls
from hindsight_site.api import docs

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("", include("hindsight_site.accounts.urls")),
    path("", include("memories.urls")),
    path("", include("reflection.urls")),
    path("review/", include("reflection.review.urls")),
    path("", include(token_urls.root)),
    path("api/v1/", include(token_urls.rest)),
    path("api/v1/", include("memories.api.urls")),
    path("api/v1/", include("reflection.api.urls")),
    path("api/v1/schema", docs.schema, name="api-schema"),
    path("api/v1/docs", docs.reference, name="api-docs"),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
]

handler400 = "hindsight_site.errors.bad_request"
handler403 = "hindsight_site.errors.forbidden"
handler404 = "hindsight_site.errors.not_found"
handler500 = "hindsight_site.errors.server_error"
