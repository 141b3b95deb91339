"""What the Dockerfile and docker-compose.yml promise. Whether the image runs is tried by `.ci/image`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE_TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = sorted(SERVICES.keys() - {"db"})


def needs(service: str) -> dict[str, str]:
    """What a service waits for, and in which state."""
    return {name: on["condition"] for name, on in SERVICES[service].get("depends_on", {}).items()}


def test_nothing_starts_before_what_it_needs() -> None:
    assert set(SERVICES) == {"db", "migrate", "backup", "web", "worker", "worker-long"}
    assert needs("migrate") == needs("backup") == {"db": "service_healthy"}
    for name in ("web", "worker", "worker-long"):
        assert needs(name) == {"migrate": "service_completed_successfully"}
    assert "pg_isready" in SERVICES["db"]["healthcheck"]["test"]
    assert SERVICES["worker-long"]["environment"]["Q_CLUSTER_NAME"] == "long"


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_secrets_come_from_files(name: str) -> None:
    service = SERVICES[name]
    assert set(service["secrets"]) <= COMPOSE["secrets"].keys()
    files = {key: value for key, value in service["environment"].items() if key.endswith("_FILE")}
    assert {value.removeprefix("/run/secrets/") for value in files.values()} <= set(service["secrets"])
    assert not {"SECRET_KEY", "DATABASE_URL", "DATABASE_OWNER_URL", "METRICS_TOKEN", "POSTGRES_PASSWORD"} & set(
        service["environment"]
    )
    assert all(secret["file"].startswith("./secrets/") for secret in COMPOSE["secrets"].values())


def test_only_those_that_change_the_schema_or_read_all_rows_know_the_owner() -> None:
    assert {name for name in SERVICES if "database_owner_url" in SERVICES[name]["secrets"]} == {"migrate", "backup"}
    assert SERVICES["backup"]["profiles"], "`up` starts no backup"


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_service_has_its_limits(name: str) -> None:
    limits = SERVICES[name]["deploy"]["resources"]["limits"]
    assert limits["memory"]
    assert limits["pids"] >= 256


@pytest.mark.parametrize("name", OURS)
def test_ours_may_do_as_little_as_can_be(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "/tmp" in service["tmpfs"]
    assert all(str(port).startswith("127.0.0.1:") for port in service.get("ports", []))
    assert not service.get("privileged")


def test_a_stop_leaves_time_for_what_is_at_work() -> None:
    from django.conf import settings

    assert seconds(SERVICES["web"]["stop_grace_period"]) > 30  # the default of `manage.py web --grace`
    assert seconds(SERVICES["worker"]["stop_grace_period"]) > settings.Q_CLUSTER["timeout"]
    assert (
        seconds(SERVICES["worker-long"]["stop_grace_period"]) >= settings.Q_CLUSTER["ALT_CLUSTERS"]["long"]["timeout"]
    )


def seconds(period: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([smh])", period).groups()
    return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]


def test_the_database_is_not_reached_from_outside() -> None:
    assert "ports" not in SERVICES["db"]
    assert {volume.partition(":")[0] for volume in SERVICES["db"]["volumes"]} <= COMPOSE["volumes"].keys()


def test_settings_that_compose_gives_are_read() -> None:
    """A mistyped name would be no error, only a setting that has no effect."""
    known = set(re.findall(r'env_\w+\("(\w+)"', (ROOT / "hindsight_site" / "settings.py").read_text(encoding="utf-8")))
    known |= {f"{name}_FILE" for name in known} | {"Q_CLUSTER_NAME"}
    for name in OURS:
        assert SERVICES[name]["environment"].keys() <= known


def test_the_image_is_built_from_the_hashed_lock_and_runs_as_nobody_in_particular() -> None:
    final = DOCKERFILE.rpartition("\nFROM ")[2]
    assert "--require-hashes" in DOCKERFILE
    assert "--only-binary :all:" in DOCKERFILE
    assert re.search(r"^USER (?!root|0\b)\w+", final, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK ", final, re.MULTILINE)
    assert "pip install" not in final
    assert not re.search(r"^(ENV|ARG) .*(SECRET|PASSWORD|TOKEN)", final, re.MULTILINE | re.IGNORECASE)
    lock = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    pins = re.findall(r"^[a-z0-9].*==.*", lock, re.MULTILINE)
    assert len(pins) > 40
    assert lock.count("--hash=sha256:") >= len(pins)


def test_what_the_build_copies_is_let_through_and_nothing_else() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    copied = {
        source
        for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    }
    assert ignored[0] == "*"
    assert {name.removeprefix("!") for name in ignored if name.startswith("!")} == copied
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    not os.environ.get("HINDSIGHT_TRY_IMAGE"),
    reason="builds and runs the image, which takes minutes, root and a package index: set HINDSIGHT_TRY_IMAGE=1",
)
def test_the_image_builds_and_runs() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / ".ci" / "image"], cwd=ROOT, text=True, capture_output=True, check=False
    )
    if "Cannot be tried here" in result.stderr:
        pytest.skip(result.stderr.strip())
    assert result.returncode == 0, result.stdout + result.stderr
