"""The site itself as an app: its commands and static files; and the admin that knows teams."""

import sys

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin.apps import AdminConfig, SimpleAdminConfig


class SiteConfig(AppConfig):
    name = "hindsight_site"
    label = "site"
    verbose_name = "Hindsight"

    def ready(self) -> None:
        if settings.SENTRY_DSN:
            from hindsight_site.telemetry import errors

            errors.start(settings.SENTRY_DSN, settings.SENTRY_ENVIRONMENT)


class StaffAdminConfig(AdminConfig):
    """Django's admin, working in one team at a time."""

    default_site = "hindsight_site.accounts.staff.StaffSite"

    def ready(self) -> None:
        """Load every app's pages, but not where none is served: `up` would be half a second later for them."""
        if sys.argv[1:2] in (["up"], ["worker"]):
            SimpleAdminConfig.ready(self)
        else:
            super().ready()
