"""/healthz and /readyz: what load balancers and containers ask."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from hindsight_site import stuck_work
from hindsight_site.health import QUEUE_IS_LATE_AFTER


@pytest.fixture
def unreachable_database(transactional_db) -> Iterator[None]:
    """Point the connection at a port where nothing listens, as after a crash of the server."""
    connection.close()
    saved = dict(connection.settings_dict)
    connection.settings_dict.update(HOST="127.0.0.1", PORT="1")
    yield
    connection.close()
    connection.settings_dict.update(saved)


def in_queue(waiting: timedelta) -> None:
    OrmQ.objects.create(key="hindsight", payload="", lock=timezone.now() - waiting)


def test_healthz_answers_without_a_database(client: Client) -> None:
    # Without the `db` fixture any query raises.
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    assert "no-cache" in response["Cache-Control"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_nothing_is_changed_by_asking(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405


@pytest.mark.django_db
def test_readyz_when_all_is_well(client: Client, django_assert_num_queries) -> None:
    cache.delete(stuck_work.KEY)
    with django_assert_num_queries(4):
        response = client.get("/readyz")
    assert response.status_code == 200
    assert response.json() == {
        "status": "ready",
        "checks": {
            "database": {"ok": True},
            "migrations": {"ok": True, "unapplied": 0},
            "queue": {"ok": True, "waiting": 0, "oldest_seconds": 0.0},
            "work": {"ok": True, "stuck": {}, "swept_seconds_ago": None},
        },
    }


@pytest.mark.django_db
def test_readyz_with_migrations_to_apply(client: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'memories'")
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response["Retry-After"] == "5"
    assert response.json()["status"] == "not_ready"
    assert response.json()["checks"]["migrations"]["unapplied"] >= 1


@pytest.mark.django_db
def test_readyz_on_an_empty_database(client: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_migrations RENAME TO somewhere_else")
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["migrations"]["unapplied"] > 20


@pytest.mark.django_db
def test_a_late_queue_is_reported_but_the_web_stays(client: Client) -> None:
    in_queue(waiting=timedelta(seconds=QUEUE_IS_LATE_AFTER + 60))
    in_queue(waiting=timedelta(seconds=1))
    in_queue(waiting=timedelta(seconds=-300))  # with a worker
    response = client.get("/readyz")
    queue = response.json()["checks"]["queue"]
    assert (response.status_code, response.json()["status"]) == (200, "degraded")
    assert (queue["ok"], queue["waiting"]) == (False, 2)
    assert queue["oldest_seconds"] == pytest.approx(QUEUE_IS_LATE_AFTER + 60, abs=5)


@pytest.mark.usefixtures("unreachable_database")
def test_readyz_without_a_database_says_so_and_no_more(client: Client) -> None:
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json() == {"status": "not_ready", "checks": {"database": {"ok": False}}}
    assert client.get("/healthz").status_code == 200
