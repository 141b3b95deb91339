"""The system user that the server runs as: the current one, or an unprivileged one where we are root."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hindsight_site.embedded_db.errors import EmbeddedDatabaseError

UNPRIVILEGED_USERS = ("postgres", "nobody")  # in order of preference

# Names the working directory of whoever reads it, without a walk through the folders above it. A server that
# is started inside its data directory finds it by this path even below a folder that its user cannot enter.
_WORKING_DIRECTORY = "/proc/self/cwd"


@dataclass(frozen=True)
class Account:
    """A system user, by number. `switch`: we are root and have to become this user."""

    uid: int
    gid: int
    switch: bool

    def run(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path,
        text: str = "",
        home: Path | None = None,
        output: int = subprocess.PIPE,
        keep: Sequence[int] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run `command` as this user inside `cwd`, which is entered before the user is changed.

        `text` is its standard input, `home` the PostgreSQL installation that it belongs to, `output` where
        standard output and standard error go, `keep` the descriptors that it inherits. None of our own
        environment reaches it, PostgreSQL's variables (PGDATA, PGPORT) least of all.
        """
        return subprocess.run(  # noqa: S603 - our own commands, no shell
            [str(part) for part in command],
            cwd=cwd,
            input=text,
            stdout=output,
            stderr=subprocess.PIPE if output == subprocess.PIPE else output,
            encoding="utf-8",
            errors="replace",
            env=_environment(home),
            umask=0o077,
            pass_fds=tuple(keep),
            start_new_session=True,
            user=self.uid if self.switch else None,
            group=self.gid if self.switch else None,
            extra_groups=[] if self.switch else None,
            check=False,
        )


def choose(database: Path) -> Account:
    """Who runs the server of the data directory `database`, which need not exist yet.

    PostgreSQL refuses root, so root becomes the owner of the directory (or of the folder around it), or where
    that is root too the first of UNPRIVILEGED_USERS. Raises EmbeddedDatabaseError where there is none, or
    where the directory belongs to somebody else.
    """
    owner = database.stat() if database.exists() else database.parent.stat() if os.geteuid() == 0 else None
    if os.geteuid() != 0:
        if owner is not None and owner.st_uid != os.geteuid():
            raise EmbeddedDatabaseError(
                f"{database} belongs to the user {_name(owner.st_uid)}: run as that user, choose another"
                " folder with --data-dir, or set DATABASE_URL"
            )
        return Account(os.geteuid(), os.getegid(), switch=False)
    if owner is not None and owner.st_uid != 0:
        return Account(owner.st_uid, owner.st_gid, switch=True)
    for name in UNPRIVILEGED_USERS:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(user.pw_uid, user.pw_gid, switch=True)
    raise EmbeddedDatabaseError(
        f"PostgreSQL does not run as root and there is no user {' or '.join(UNPRIVILEGED_USERS)}: create one"
        " (useradd --system postgres), run as another user, or set DATABASE_URL"
    )


def own(account: Account, folder: Path) -> None:
    """Give `folder` and all in it to `account` where it is root's, and close it to everybody else."""
    if account.switch and folder.stat().st_uid != account.uid:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, account.uid, account.gid, follow_symlinks=False)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def can_enter(account: Account, folder: Path) -> bool:
    """Whether `account` gets to `folder` by its path."""
    return account.run(["/bin/sh", "-c", 'cd "$1"', "sh", folder], cwd=Path("/")).returncode == 0


def path_for(account: Account, folder: Path) -> str:
    """How a process of `account` that was started inside `folder` names it.

    Raises EmbeddedDatabaseError where the user cannot enter it and the system offers no way around.
    """
    if can_enter(account, folder):
        return str(folder)
    if sys.platform == "linux" and Path(_WORKING_DIRECTORY).exists():
        return _WORKING_DIRECTORY
    raise EmbeddedDatabaseError(
        f"the user {_name(account.uid)}, whom PostgreSQL runs as, cannot enter {folder}: choose a folder that"
        " it can reach with --data-dir, run as another user, or set DATABASE_URL"
    )


def _environment(home: Path | None) -> dict[str, str]:
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "TZ": "UTC"}
    if home is not None:
        environment["LD_LIBRARY_PATH"] = str(home / "lib")  # libraries that one of the packages brings along
    return environment


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
