"""The data folder: what lies where in it, its locks, and the file that knows port and passwords."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from hindsight_site.embedded_db.errors import EmbeddedDatabaseError

LOCK_TIMEOUT = 300.0  # seconds; longer than one crash recovery that another process is waiting for
_POLL = 0.02  # seconds

# This process's leases: folder → descriptor that holds the shared lock.
_leases: dict[Path, int] = {}


@dataclass(frozen=True)
class Folder:
    """The places in one data folder. `root` is absolute."""

    root: Path

    @property
    def database(self) -> Path:
        """PostgreSQL's own data directory. It appears by a rename, so where it exists it is complete."""
        return self.root / "database"

    @property
    def binaries(self) -> Path:
        """Copies of the PostgreSQL programs, where the packaged ones cannot be used in place."""
        return self.root / "binaries"

    @property
    def start_lock(self) -> Path:
        """Held by whoever creates, starts or stops the database."""
        return self.root / "start.lock"

    @property
    def server_lock(self) -> Path:
        """Inherited and held by every process of the server, to the last orphan: free means none lives."""
        return self.root / "server.lock"

    @property
    def lease_lock(self) -> Path:
        """Held, shared, by every process that uses the database."""
        return self.root / "lease.lock"

    @property
    def start_log(self) -> Path:
        """What the server said before its own log files in `database/log` took over."""
        return self.root / "start.log"

    @property
    def connection_file(self) -> Path:
        """Port and passwords, mode 0600."""
        return self.root / "connection.json"


@dataclass(frozen=True)
class Connection:
    """What the connection file holds: the port, and the password of each database role."""

    port: int
    passwords: dict[str, str]


def locate(data_dir: Path) -> Folder:
    """The folder at `data_dir`, with `~`, relative parts and symbolic links resolved."""
    return Folder(Path(data_dir).expanduser().resolve())


def prepare(folder: Folder) -> None:
    """Create the folder if need be. As root, let the server's user pass through it (but not list it)."""
    folder.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.geteuid() == 0:
        folder.root.chmod(folder.root.stat().st_mode & 0o7777 | 0o011)


def read_connection(folder: Folder) -> Connection | None:
    """Port and passwords, None where there is no file. Raises EmbeddedDatabaseError when it is damaged."""
    try:
        return Connection(**json.loads(folder.connection_file.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise EmbeddedDatabaseError(
            f"{folder.connection_file} is damaged: restore it from a backup, or move {folder.root} away"
        ) from error


def write_connection(folder: Folder, connection: Connection) -> None:
    """Replace the connection file in one step; readable by its owner only."""
    temporary = folder.connection_file.with_suffix(".new")
    descriptor = open_private(temporary, os.O_WRONLY | os.O_TRUNC)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(connection), file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder.connection_file)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path` alone. Waits for its turn, up to LOCK_TIMEOUT."""
    descriptor = open_private(path, os.O_RDWR)
    try:
        deadline = time.monotonic() + LOCK_TIMEOUT
        while not _try_lock(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise EmbeddedDatabaseError(
                    f"another process has held {path} for {LOCK_TIMEOUT:.0f} s: end it and try again"
                )
            time.sleep(_POLL)
        yield
    finally:
        os.close(descriptor)


def starting(folder: Folder) -> AbstractContextManager[None]:
    """Be the only process that creates, starts or stops this database."""
    return locked(folder.start_lock)


def claim_server(folder: Folder) -> int | None:
    """A descriptor that holds the server lock, to be handed on to the server that the caller starts.

    None while any process of an earlier server still lives. This, unlike a process id in a file, cannot take
    a zombie or a stranger for the server, and sees orphans too. Call it inside `starting` only.
    """
    descriptor = open_private(folder.server_lock, os.O_RDWR)
    if _try_lock(descriptor, fcntl.LOCK_EX):
        return descriptor
    os.close(descriptor)
    return None


def is_server_gone(folder: Folder, *, within: float = 0.0) -> bool:
    """Whether no process of the server lives, now or after waiting for up to `within` seconds."""
    deadline = time.monotonic() + within
    while True:
        descriptor = claim_server(folder)
        if descriptor is not None:
            os.close(descriptor)
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL)


def take_lease(folder: Folder) -> bool:
    """Note that this process uses the database, until `drop_lease` or its death. False if it already did.

    Call it inside `starting`, so that nobody is stopping the server meanwhile.
    """
    descriptor = open_private(folder.lease_lock, os.O_RDWR)
    held = _leases.get(folder.root)
    if held is not None and os.path.sameopenfile(held, descriptor):
        os.close(descriptor)
        return False
    drop_lease(folder)  # of a folder that was deleted and made anew
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    _leases[folder.root] = descriptor
    return True


def drop_lease(folder: Folder) -> None:
    """End this process's use. Closes without unlocking: a forked child that shares the lease keeps it."""
    descriptor = _leases.pop(folder.root, None)
    if descriptor is not None:
        os.close(descriptor)


def is_leased(folder: Folder) -> bool:
    """Whether any process (this one included) uses the database. Call it inside `starting`."""
    descriptor = open_private(folder.lease_lock, os.O_RDWR)
    try:
        return not _try_lock(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)


def open_private(path: Path, flags: int) -> int:
    """Open or create a file of mode 0600. As root it goes to the folder's owner, who may come back later."""
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
    return descriptor


def _try_lock(descriptor: int, kind: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        return True
    return False
