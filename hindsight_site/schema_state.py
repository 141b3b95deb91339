"""Whether the database's schema is the one this code was written for, told in a few milliseconds."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pkgutil import iter_modules

from django.apps import apps
from django.db import connection

Migration = tuple[str, str]  # app label, name


@cache
def known_migrations() -> frozenset[Migration]:
    """The migrations of all installed apps, by the names of their files; none of them is imported."""
    found = set()
    for app in apps.get_app_configs():
        package = find_spec(f"{app.name}.migrations")
        if package and package.submodule_search_locations:
            names = (module.name for module in iter_modules(package.submodule_search_locations))
            found |= {(app.label, name) for name in names if not name.startswith("_")}
    return frozenset(found)


def unapplied_migrations() -> list[Migration]:
    """The migrations that this database still lacks, sorted. All of them where it is empty.

    Raises OperationalError when the database does not answer.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('django_migrations') IS NOT NULL")
        applied: set[Migration] = set()
        if cursor.fetchone()[0]:
            cursor.execute("SELECT app, name FROM django_migrations")
            applied = set(cursor.fetchall())
    return sorted(known_migrations() - applied)
