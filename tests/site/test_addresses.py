"""Addresses in settings: what is none is told at the start, in a line that shows nothing of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from hindsight_site import addresses

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "url",
    [
        "http://collector:4318", "https://host", "https://user:p%2Fw@host:1/v1", "http://[::1]:8000", "http://127.0.0.1",
        "https://例子.测试/v1",
    ],
)  # fmt: skip
def test_a_web_address_is_taken(url: str) -> None:
    assert addresses.flaw(url) == ""


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("collector:4318", "http"),
        ("ftp://host", "http"),
        ("http://", "host"),
        ("http://[bad", "host"),
        ("http://two words/", "host"),
        ("http://host:99999", "port"),
        ("http://host:0", "port"),
        ("http://host:secret", "port"),
    ],
)
def test_what_is_none_is_told_by_its_part(url: str, told: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^A_SETTING is not .* https://host: its? .*{told}") as refused:
        addresses.check("A_SETTING", url, "https://host")
    assert "secret" not in str(refused.value)


def test_an_address_that_is_not_set_is_none_to_check() -> None:
    addresses.check("A_SETTING", "", "https://host")
    addresses.check_dsn("A_SETTING", "")
    addresses.check_database("A_SETTING", "")


def test_a_project_of_sentry_has_a_key_and_a_number() -> None:
    addresses.check_dsn("SENTRY_DSN", "https://key@o1.ingest.sentry.test/2")
    addresses.check_dsn("SENTRY_DSN", "http://key@host:9000/below/2")
    for dsn in ("nonsense", "https://host/2", "https://key@host/", "https://key@host/two", "https://key@host:99999/2"):
        with pytest.raises(ImproperlyConfigured, match="^SENTRY_DSN is not an address of the form https://key@host/"):
            addresses.check_dsn("SENTRY_DSN", dsn)


def test_a_database_is_a_uri_or_what_libpq_takes() -> None:
    for url in ("postgresql://a:b@host/x", "postgresql:///x", "host=h dbname=x", "postgresql://h:1,i:2/x"):
        addresses.check_database("DATABASE_URL", url)
    for url in ("garbage", "mysql://a@host/x", "postgresql://a:b@host:99999/x", "postgresql://h:1,i:0/x"):
        with pytest.raises(ImproperlyConfigured, match="^A_URL is not an address of the form postgresql://user"):
            addresses.check_database("A_URL", url)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("DATABASE_URL", "garbage-pw"),
        ("DATABASE_OWNER_URL", "garbage-pw"),
        ("DATABASE_DIRECT_URL", "garbage-pw"),
        ("DATABASE_REPLICA_URL", "postgresql://a:garbage-pw@host:99999/x"),
        ("SENTRY_DSN", "garbage-pw"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:garbage-pw@collector:99999"),
        ("LLM_BASE_URL", "garbage-pw"),
        ("EMBEDDING_BASE_URL", "http://[garbage-pw"),
        ("SITE_URL", "garbage-pw"),
        ("WORKERS", "garbage-pw"),
        ("LLM_TIMEOUT_SECONDS", "garbage-pw"),
        ("METRICS_TOKEN_FILE", "/there/is/none"),
    ],
)
def test_a_setting_that_is_wrong_is_one_line_that_names_it(setting: str, value: str, tmp_path: Path) -> None:
    told = _checked(tmp_path, {setting: value})
    assert told.returncode == 1
    (line,) = told.stderr.splitlines()
    assert line.startswith(f"{setting} ")
    assert "garbage-pw" not in line


@pytest.mark.parametrize("url", ["http://[bad", "http://host:99999"])
def test_a_vector_index_at_no_address_is_told_without_a_stack(url: str, tmp_path: Path) -> None:
    pytest.importorskip("qdrant_client", reason="the extra `qdrant` is not installed")
    told = _checked(tmp_path, {"VECTOR_INDEX": "qdrant", "VECTOR_INDEX_URL": url})
    assert told.returncode == 1
    assert "VECTOR_INDEX_URL is no address" in told.stderr
    assert "Traceback" not in told.stderr


def _checked(data_dir: Path, given: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What `manage.py check` says of settings."""
    command = [sys.executable, "manage.py", "check", "--data-dir", str(data_dir)]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **given}, text=True, capture_output=True, check=False, timeout=120
    )
