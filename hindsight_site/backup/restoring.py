"""`manage.py restore`: the rows of a backup into an empty database."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor

from hindsight_site.accounts import sealing
from hindsight_site.backup import tables
from hindsight_site.backup.manifest import KEY_PURPOSE, BackupError, Content, Manifest, chunks, verify
from hindsight_site.schema_state import Migration, known_migrations

Say = Callable[[str], None]

# What kind of process another role's is, is hidden from a role that is no administrator; the server's own have no role.
OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND usesysid IS NOT NULL
  AND coalesce(backend_type, 'client backend') = 'client backend'
"""


@dataclass(frozen=True, slots=True)
class Consent:
    """What the operator has said yes to: losing what is in the database; a backup of another SECRET_KEY."""

    lose_present: bool = False
    without_key: bool = False


def restore(archive: zipfile.ZipFile, manifest: Manifest, consent: Consent, say: Say) -> None:
    """Put the rows of a backup into the database. As the owner of the tables, outside any transaction.

    Everything that can be known beforehand is checked before anything is touched; the rows come in one
    transaction: all or none. Raises BackupError.
    """
    check_key(manifest, consent)
    check_code(manifest)
    verify(archive, manifest)
    say(f"The file is whole: {len(manifest.contents)} tables, {manifest.rows:,} rows of {manifest.made_at}.")
    _make_room(consent)
    say("Making the tables …")
    _migrate(manifest.migrations)
    _load(archive, manifest, say)
    call_command("migrate", interactive=False, verbosity=0)  # from the backup's schema to ours
    with connection.cursor() as cursor:
        # Searching asks the statistics, which are not part of a backup.
        cursor.execute(tables.analyze(table.name for table in tables.all_tables()))


def check_key(manifest: Manifest, consent: Consent) -> None:
    """Raises BackupError when what is sealed in the backup could not be opened here."""
    if not (consent.without_key or sealing.signed_here(b"", manifest.key, purpose=KEY_PURPOSE)):
        raise BackupError(
            "The backup was made with another SECRET_KEY, without which signing keys, webhook secrets, the teams' "
            "model keys and waiting exports in it cannot be read. Set SECRET_KEY to that one, or name it in "
            "SECRET_KEY_FALLBACKS; if it is lost, --without-key restores all the rest."
        )


def check_code(manifest: Manifest) -> None:
    """Raises BackupError when the backup is of a newer version than this code."""
    if newer := sorted(set(manifest.migrations) - known_migrations()):
        app, name = newer[0]
        raise BackupError(
            f"The backup was made by version {manifest.version}, which this one does not know all of "
            f"({app} {name}): install that version, or a newer one."
        )


def _make_room(consent: Consent) -> None:
    """Refuse a database that holds something or that somebody works with; or empty it, where that was said."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(OTHERS)
        if others := cursor.fetchone()[0]:
            raise BackupError(f"{others} other connections use the database: stop the web server and the workers.")
        present = [table.name for table in tables.all_tables()]
        if not present:
            return
        if not consent.lose_present and not (ours := _is_unused(present)):
            found = "tables of another program" if ours is None else "people or teams"
            raise BackupError(f"The database holds {found}: restore into an empty one, or lose them with --force.")
        cursor.execute(tables.drop(present))


def _is_unused(present: Iterable[str]) -> bool | None:
    """Whether our tables stand there, all or some, and nobody has used them; None when they are not ours."""
    if "django_migrations" not in present:
        return None
    if not {"accounts_team", "accounts_user"} <= set(present):  # migrating was interrupted
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT NOT EXISTS (SELECT FROM accounts_team) AND NOT EXISTS (SELECT FROM accounts_user)")
        return bool(cursor.fetchone()[0])


def _migrate(migrations: Iterable[Migration]) -> None:
    """Make the schema that the backup was of."""
    executor = MigrationExecutor(connection)
    wanted = set(migrations)
    nodes = executor.loader.graph.node_map
    last = [
        node
        for node in wanted & nodes.keys()
        if not any(child.key in wanted and child.key[0] == node[0] for child in nodes[node].children)
    ]
    executor.migrate(sorted(last))


def _load(archive: zipfile.ZipFile, manifest: Manifest, say: Say) -> None:
    """All rows, or none."""
    here = {table.name: table for table in tables.all_tables()}
    if unknown := sorted({content.table for content in manifest.contents} - here.keys()):
        raise BackupError(f"The backup has a table {unknown[0]} that the migrations do not make: it is not ours.")
    fenced = [name for name, table in here.items() if table.fenced]
    try:
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 0")
            for name in fenced:
                cursor.execute(tables.lift_fence(name))
            if any(table.fenced for table in tables.all_tables()):
                raise BackupError("The role does not own the tables: connect as their owner (DATABASE_OWNER_URL).")
            cursor.execute(tables.truncate(here))
            for content in manifest.contents:
                _load_table(archive, content)
                say(f"{content.table}: {content.rows:,} rows")
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # every foreign key, now
            tables.advance_sequences()
            for name in fenced:
                cursor.execute(tables.put_fence_back(name))
    except DatabaseError as error:
        told = str(error).partition("\n")[0]
        raise BackupError(f"The database refused the rows, and holds none of them: {told}") from error


def _load_table(archive: zipfile.ZipFile, content: Content) -> None:
    """The rows of one table. Raises BackupError when not as many arrive as were saved."""
    digest = hashlib.sha256()
    statement = tables.copy_in(content.table, content.columns)
    with connection.cursor() as cursor:
        with archive.open(content.member) as member, cursor.copy(statement) as rows:
            for chunk in chunks(member):
                digest.update(chunk)
                rows.write(chunk)
        arrived = cursor.rowcount
    if (arrived, digest.hexdigest()) != (content.rows, content.sha256):
        raise BackupError(f"{content.table}: {arrived:,} rows arrived of {content.rows:,}; nothing was kept.")
