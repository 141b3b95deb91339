"""Creating the database: initdb, roles, extensions, settings."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hindsight_site.embedded_db.account import Account, own, path_for
from hindsight_site.embedded_db.binaries import NO_AVX2, Tree
from hindsight_site.embedded_db.errors import EmbeddedDatabaseError
from hindsight_site.embedded_db.folder import Connection, Folder

DATABASE = "hindsight"
OWNER = "hindsight_owner"
APP = "hindsight_app"
SUPERUSER = "postgres"

_NEW = "database.new-"  # a database that is being created, or whose creation was cut short

# Written to postgresql.conf once, so that an operator may change them there.
_SETTINGS = {
    "shared_buffers": "256MB",
    "effective_cache_size": "1GB",
    "work_mem": "8MB",
    "maintenance_work_mem": "64MB",
    "max_connections": "100",
    "random_page_cost": "1.1",
    "jit": "off",
    "max_wal_size": "512MB",  # bounds the time that recovery takes after a crash
    "min_wal_size": "64MB",
    "checkpoint_timeout": "10min",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # One file per day of the week, overwritten a week later.
    "logging_collector": "on",
    "log_directory": "log",
    "log_filename": "postgresql-%a.log",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
    "log_checkpoints": "off",
    # Statements and details hold what people and agents wrote, which does not belong into a log.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}

# The builtin provider sorts and folds case; pg_trgm still asks the C library which characters are letters,
# and in plain C no Chinese or accented one is. The first of these that the system has is taken.
_CHARACTER_TYPES = ("C.UTF-8", "en_US.UTF-8", "UTF-8", "C")

_HOST_ACCESS = """\
host all         all      127.0.0.1/32 scram-sha-256
host replication postgres 127.0.0.1/32 scram-sha-256
"""


def new_passwords() -> dict[str, str]:
    """A random password (256 bits, URL-safe) for each role."""
    return {role: secrets.token_urlsafe(32) for role in (SUPERUSER, OWNER, APP)}


def create(folder: Folder, tree: Tree, account: Account, connection: Connection) -> None:
    """Create `folder.database`, complete with roles and extensions, or leave nothing behind.

    Everything is done on a server without a port, in a folder that is renamed at the end: whoever is killed
    on the way leaves only that folder, which the next one removes. Raises EmbeddedDatabaseError.
    """
    _remove_unfinished(folder)
    new = Path(tempfile.mkdtemp(prefix=_NEW, dir=folder.root))
    try:
        own(account, new)
        data = path_for(account, new)
        _initdb(new, data, tree, account)
        (new / "pg_hba.conf").write_text(_HOST_ACCESS)
        _provision(new, data, tree, account, connection)
        _run([tree.program("initdb"), "--sync-only", *_sync_method(), "-D", data], new, tree, account)
        new.rename(folder.database)
        _sync_folder(folder.root)
    finally:
        # Anew: the programs of a starter that was killed may have written on while theirs was being removed.
        _remove_unfinished(folder)


def update_extensions(addresses: Sequence[str]) -> None:
    """Bring the extensions of these databases to the versions that came with the programs.

    A new release of the programs has the libraries, but what a database knows of them stays as it was created.
    `addresses` are those of a superuser. Raises EmbeddedDatabaseError.
    """
    import psycopg  # late: a start that finds the server running does without
    from psycopg import sql

    outdated = "SELECT name FROM pg_available_extensions WHERE installed_version <> default_version"
    for address in addresses:
        try:
            link = psycopg.connect(address, autocommit=True, connect_timeout=5)
        except psycopg.OperationalError:
            return  # gone again: whoever uses the server will see, and the next start comes by here
        with link:
            try:
                for (name,) in link.execute(outdated).fetchall():
                    link.execute(sql.SQL("ALTER EXTENSION {} UPDATE").format(sql.Identifier(name)))
            except psycopg.Error as error:
                reason = str(error).strip().partition("\n")[0]
                raise EmbeddedDatabaseError(f"an extension could not be brought up to date: {reason}") from error


def _remove_unfinished(folder: Folder) -> None:
    """Remove every database whose creation was cut short. Call with the folder's lock held."""
    for unfinished in folder.root.glob(f"{_NEW}*"):
        shutil.rmtree(unfinished, ignore_errors=True)


def check_version(folder: Folder, tree: Tree) -> None:
    """Raise EmbeddedDatabaseError unless `folder.database` has the format of this PostgreSQL."""
    try:
        major = (folder.database / "PG_VERSION").read_text().strip()
    except FileNotFoundError as error:
        raise EmbeddedDatabaseError(
            f"{folder.database} is no PostgreSQL data directory: move it away, or choose another folder with --data-dir"
        ) from error
    if major != tree.major:
        raise EmbeddedDatabaseError(
            f"{folder.database} was made by PostgreSQL {major}, this is {tree.major}: take a backup with the"
            f" release that made it, move {folder.root} away and restore the backup, or set DATABASE_URL"
        )


def _initdb(new: Path, data: str, tree: Tree, account: Account) -> None:
    options = [
        "-D",
        data,
        "-U",
        SUPERUSER,
        "--auth=reject",
        "--no-sync",
        "--no-instructions",
        "--encoding=UTF8",
    ]
    options += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    options += [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
    for character_type in _CHARACTER_TYPES:
        command: list[str | Path] = [tree.program("initdb"), *options, f"--lc-ctype={character_type}"]
        answer = account.run(command, cwd=new, home=tree.home)
        if "invalid locale name" not in answer.stderr:
            break
    _check(answer)


def _provision(new: Path, data: str, tree: Tree, account: Account, connection: Connection) -> None:
    """Roles, extensions and the database, in PostgreSQL's single-user mode: one statement a line, no port.

    What is put into template1 is in every database made later too, those of the tests among them.
    """
    passwords = connection.passwords
    no_power = "LOGIN NOSUPERUSER NOCREATEROLE NOREPLICATION NOBYPASSRLS"
    defaults = f"ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} GRANT"
    statements = [
        f"ALTER ROLE {SUPERUSER} PASSWORD '{passwords[SUPERUSER]}'",
        f"CREATE ROLE {OWNER} {no_power} CREATEDB PASSWORD '{passwords[OWNER]}'",
        f"CREATE ROLE {APP} {no_power} NOCREATEDB PASSWORD '{passwords[APP]}'",
        "CREATE EXTENSION vector",
        # Meets an instruction that this CPU lacks here rather than in the first recall.
        "SELECT array_fill(1::real, ARRAY[64])::vector <-> array_fill(2::real, ARRAY[64])::vector",
        f"{defaults} SELECT, INSERT, UPDATE, DELETE ON TABLES TO {APP}",
        f"{defaults} USAGE, SELECT ON SEQUENCES TO {APP}",
        f"CREATE DATABASE {DATABASE} OWNER {OWNER}",
    ]
    if any(tree.home.glob("share/**/extension/btree_gin.control")):
        statements.insert(3, "CREATE EXTENSION btree_gin")
    command: list[str | Path] = [tree.program("postgres"), "--single", "-D", data, "-c", "exit_on_error=on"]
    command += [
        "-c",
        "logging_collector=off",
        "-c",
        "fsync=off",
        "template1",
    ]  # `create` syncs it all at the end
    _run(command, new, tree, account, text="".join(f"{statement}\n" for statement in statements))


def _run(command: list[str | Path], new: Path, tree: Tree, account: Account, *, text: str = "") -> None:
    _check(account.run(command, cwd=new, home=tree.home, text=text))


def _check(answer: subprocess.CompletedProcess[str]) -> None:
    """Raise EmbeddedDatabaseError with the reason that a command gave, unless it succeeded."""
    if answer.returncode == -signal.SIGILL:
        raise EmbeddedDatabaseError(NO_AVX2)
    if answer.returncode:
        reasons = re.findall(r"(?:error|FATAL|PANIC|could not .*?): +(.*)", answer.stderr)
        reason = reasons[0] if reasons else f"{Path(answer.args[0]).name}: exit code {answer.returncode}"
        raise EmbeddedDatabaseError(f"the embedded database could not be created: {reason}")


def _sync_method() -> list[str]:
    return ["--sync-method=syncfs"] if sys.platform == "linux" else []


def _sync_folder(path: Path) -> None:
    """Make a rename inside `path` durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
