"""The site itself as an app: its commands and static files; and the admin that knows teams."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class SiteConfig(AppConfig):
    name = "hindsight_site"
    label = "site"
    verbose_name = "Hindsight"


class StaffAdminConfig(AdminConfig):
    """Django's admin, working in one team at a time."""

    default_site = "hindsight_site.accounts.staff.StaffSite"
