"""The site itself as an app: its commands and static files."""

from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "hindsight_site"
    label = "site"
    verbose_name = "Hindsight"
