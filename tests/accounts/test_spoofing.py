"""Headers that a caller can write itself move nothing."""

from __future__ import annotations

import pytest
from django.urls import reverse

pytestmark = pytest.mark.django_db
SPOOFED = ("HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_FORWARDED", "HTTP_CF_CONNECTING_IP")


@pytest.mark.parametrize("header", SPOOFED)
def test_a_made_up_address_does_not_reset_the_log_in_throttle(client, header) -> None:
    answers = []
    for number in range(22):
        form = {"username": f"nobody{number}@acme.test", "password": "wrong"}
        answers.append(client.post(reverse("login"), form, **{header: f"10.0.0.{number}"}).content.decode())
    assert "Too many failed attempts" not in answers[0]
    assert "Too many failed attempts" in answers[-1], "twenty a minute from one address, whatever it calls itself"


@pytest.mark.parametrize("header", [*SPOOFED, "HTTP_X_TEAM_ID", "HTTP_X_USER", "HTTP_REMOTE_USER"])
def test_a_header_opens_nothing(client, team, header) -> None:
    for value in ("127.0.0.1", str(team.pk), "alice@acme.test"):
        assert client.get("/api/v1/me", **{header: value}).status_code == 401
        assert client.get(reverse("overview"), **{header: value}).status_code == 302


def test_another_method_in_a_header_is_not_believed(api) -> None:
    memory = api.post("/api/v1/memories", {"content": "Keep me.", "kind": "fact"}).json()
    url = f"/api/v1/memories/{memory['id']}/pin"
    api.post(url, {}, HTTP_X_HTTP_METHOD_OVERRIDE="DELETE")
    assert api.get(f"/api/v1/memories/{memory['id']}").json()["status"] == "active"
