"""Where everything is. The API below /api/v1/, pages at the root, health outside both."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path
from django.utils.functional import lazy
from django.views.generic import RedirectView

from hindsight_site import health, overview
from hindsight_site.accounts.api import urls as token_urls
from hindsight_site.api import docs, stats
from hindsight_site.mcp import view as mcp_view
from hindsight_site.metrics import view as metrics_view

# Staff log in like everybody: throttled, and with their second factor.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

static_lazy = lazy(static, str)  # what a file is called is known once the files are collected

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
    path("api/v1/stats", stats.StatsView.as_view()),
    path("mcp", mcp_view.mcp, name="mcp"),
    path("api/v1/schema", docs.schema, name="api-schema"),
    path("api/v1/docs", docs.reference, name="api-docs"),
    path("admin/", admin.site.urls),
    # Browsers ask for it on pages that name no icon: the admin's.
    path("favicon.ico", RedirectView.as_view(url=static_lazy("icons/favicon.svg")), name="favicon"),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics_view.metrics),
]

handler400 = "hindsight_site.errors.bad_request"
handler403 = "hindsight_site.errors.forbidden"
handler404 = "hindsight_site.errors.not_found"
handler500 = "hindsight_site.errors.server_error"
