#!/usr/bin/env python
"""Hindsight's command line: `python manage.py help`."""

from __future__ import annotations

import argparse
import os
import sys

# Commands that need no database, or see to it themselves. All others start the embedded one when there
# is no DATABASE_URL, and stop it when they end unless another process uses it.
WITHOUT_DATABASE = {
    "help", "version", "check", "diffsettings", "spectacular", "collectstatic", "findstatic",
    "makemessages", "compilemessages", "startapp", "startproject",
    "up", "down", "web", "worker", "mcp_bridge",
}  # fmt: skip


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hindsight_site.settings")
    data_dir, sys.argv[1:] = take_data_dir(sys.argv[1:])
    if data_dir:
        os.environ["HINDSIGHT_DATA_DIR"] = os.path.abspath(os.path.expanduser(data_dir))  # noqa: PTH100, PTH111
    read_settings()
    if needs_database(sys.argv[1:]):
        ensure_database()
    from django.core.management import execute_from_command_line
    from django.db import ProgrammingError

    try:
        execute_from_command_line(sys.argv)
    except ProgrammingError:
        if not is_behind():
            raise
        sys.exit("The database lacks tables of this version: run `manage.py migrate` first.")


def take_data_dir(arguments: list[str]) -> tuple[str | None, list[str]]:
    """The value of `--data-dir`, which every command takes, and the arguments without it.

    The settings need it earlier than any command reads its options.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--data-dir")
    options, rest = parser.parse_known_args(arguments)
    return options.data_dir, rest


def needs_database(arguments: list[str]) -> bool:
    """Whether the command line names a command that works on the database."""
    is_help = not arguments or arguments[0].startswith("-") or {"-h", "--help"} & set(arguments)
    return not is_help and arguments[0] not in WITHOUT_DATABASE


def read_settings() -> None:
    """Read the settings, which make the data folder and the secret key in it at the first start."""
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured

    try:
        settings.DATA_DIR  # noqa: B018 - the first access reads them all
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}"
        sys.exit(f"The data folder cannot be used ({reason}): choose another one with --data-dir.")
    except ImproperlyConfigured as error:
        sys.exit(str(error))


def is_behind() -> bool:
    """Whether the database lacks migrations, which is then why a statement named something that is not there."""
    from django.db import DatabaseError, connection

    from hindsight_site.schema_state import unapplied_migrations

    connection.close()  # a transaction may have failed in it
    try:
        return bool(unapplied_migrations())
    except DatabaseError:
        return False


def ensure_database() -> None:
    """Start the embedded server unless there is a DATABASE_URL."""
    from hindsight_site import databases
    from hindsight_site.embedded_db import EmbeddedDatabaseError

    try:
        databases.ensure()
    except EmbeddedDatabaseError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
