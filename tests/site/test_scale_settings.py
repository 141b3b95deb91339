"""The settings of a pooler and of a replica: what Django is told, and what is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from django.core.exceptions import ImproperlyConfigured
from django.core.management import get_commands
from django.db import connection, transaction

from hindsight_site import databases
from hindsight_site.accounts.tenancy import enter_team

ROOT = Path(__file__).resolve().parents[2]
URL = "postgresql://app:secret@db.test:6432/hindsight"
SETTINGS = (ROOT / "hindsight_site" / "settings.py").read_text(encoding="utf-8")
HANDBOOK = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")


def test_a_pooler_is_told_nothing_at_the_start_and_keeps_no_cursor(tmp_path) -> None:
    straight = databases.parameters(URL, tmp_path, statement_timeout_ms=5_000)
    pooled = databases.parameters(URL, tmp_path, statement_timeout_ms=5_000, pooled=True)
    assert straight["OPTIONS"]["options"] == "-c statement_timeout=5000"
    assert not straight["DISABLE_SERVER_SIDE_CURSORS"]
    assert pooled["OPTIONS"] == {"connect_timeout": 5}
    assert pooled["DISABLE_SERVER_SIDE_CURSORS"]


@pytest.mark.django_db
def test_nothing_is_prepared_on_a_session_that_may_be_another_ones_next() -> None:
    connection.ensure_connection()
    assert connection.connection.prepare_threshold is None


@pytest.mark.django_db
def test_behind_a_pooler_a_team_at_work_is_bounded_for_its_transaction_alone(team, settings) -> None:
    settings.IS_POOLED, settings.DATABASE_STATEMENT_TIMEOUT_MS = True, 4_321

    def bound() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            return cursor.fetchone()[0]

    with transaction.atomic():
        enter_team(team)
        assert bound() == "4321ms"


@pytest.mark.parametrize(
    ("mode", "direct", "told"), [("session", URL, "session"), ("transaction", "", "DATABASE_DIRECT_URL")]
)
def test_a_pooler_without_a_way_past_it_is_refused(mode: str, direct: str, told: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=told):
        databases.check_pooler(mode, direct)


@pytest.mark.parametrize(
    ("command", "owner", "seen"),
    [("migrate", "", "direct"), ("migrate", "owner", "owner"), ("worker", "owner", "pooler")],
)
def test_the_owners_commands_go_past_the_pooler(command: str, owner: str, seen: str, tmp_path) -> None:
    code = f"import sys; sys.argv = ['manage.py', {command!r}]; from hindsight_site import settings as s; "
    code += "print(s.DATABASES['default']['HOST'], s.IS_POOLED)"
    given = {
        **os.environ, "HINDSIGHT_DATA_DIR": str(tmp_path), "DATABASE_POOLER": "transaction",
        "DATABASE_URL": "postgresql://a@pooler/x", "DATABASE_DIRECT_URL": "postgresql://a@direct/x",
        "DATABASE_OWNER_URL": f"postgresql://o@{owner}/x" if owner else "",
    }  # fmt: skip
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=given, text=True, capture_output=True, check=True)
    assert told.stdout.split() == [seen, str(seen == "pooler")]


def test_a_replica_is_given_up_early(tmp_path) -> None:
    options = databases.replica_parameters(URL, tmp_path, pooled=False)["OPTIONS"]
    assert options["connect_timeout"] == 2
    assert options["tcp_user_timeout"] == 3_000


def test_the_compose_file_with_a_pooler_fits_the_one_it_is_laid_over() -> None:
    over = yaml.safe_load((ROOT / "docs" / "examples" / "compose.pgbouncer.yml").read_text(encoding="utf-8"))
    under = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    assert set(over["services"]) - {"pooler"} <= set(under["services"])
    read = set(re.findall(r'env_\w+\("(\w+)"', SETTINGS))
    for name in ("web", "worker", "worker-long"):
        service = over["services"][name]
        assert {key.removesuffix("_FILE") for key in service["environment"]} <= read
        secrets = {*under["services"][name]["secrets"], *service["secrets"]}
        files = [value for key, value in service["environment"].items() if key.endswith("_FILE")]
        assert {value.rpartition("/")[2] for value in files} <= secrets <= {*under["secrets"], *over["secrets"]}
    assert "pool_mode = transaction" in over["configs"]["pgbouncer"]["content"]


def test_settings_and_commands_of_the_handbook_exist() -> None:
    assert {"partition_search", "citus_sql", "vector_indexes"} <= set(re.findall(r"manage\.py (\w+)", HANDBOOK))
    assert set(re.findall(r"manage\.py (\w+)", HANDBOOK)) <= get_commands().keys()
    named = set(re.findall(r"`((?:DATABASE|VECTOR|RECALL|RATE)_[A-Z_]+)`", HANDBOOK))
    assert {"DATABASE_POOLER", "DATABASE_DIRECT_URL", "DATABASE_REPLICA_URL"} <= named
    assert named <= set(re.findall(r'env_\w+\("(\w+)"', SETTINGS))
