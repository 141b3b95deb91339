"""`manage.py grant_app_role`: make the role that serves, on a database of the operator's."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from hindsight_site.roles import grant_app_role


class Command(BaseCommand):
    help = "Create the role of DATABASE_URL from DATABASE_OWNER_URL, and let it read and write the tables."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.APP_DATABASE_URL:
            raise CommandError("There is no DATABASE_URL: the embedded database has its role already.")
        try:
            name = grant_app_role()
        except DatabaseError as error:
            raise CommandError(
                "The owner may not create or grant roles: create the role of DATABASE_URL with an administrator, "
                "then run this again."
            ) from error
        self.stdout.write(f"The role {name} may read and write; row-level security binds it.\n")
