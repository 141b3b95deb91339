"""Webhooks: signed, told in the transaction of what happened, tried again for a day, never into a private network."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from django.db import transaction
from django.utils import timezone
from django_q.models import OrmQ
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts import tasks
from hindsight_site.accounts.enums import WebhookEvent
from hindsight_site.accounts.models import AuditEvent, Webhook, WebhookDelivery
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.accounts.webhooks import delivering, signing
from hindsight_site.accounts.webhooks.emitting import emit
from reflection import pipeline
from tests import factories

pytestmark = pytest.mark.django_db
ADMIN = "/api/v1/webhooks"
FINISHED = WebhookEvent.JOB_FINISHED


class Receiver:
    """A real server that keeps what it is sent and answers as it is told."""

    def __init__(self) -> None:
        self.messages: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.messages.append((dict(self.headers), body))
                self.send_response(receiver.answers.pop(0) if receiver.answers else 204)
                self.send_header("Location", "http://127.0.0.1:9/")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Silent."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver(settings) -> Iterator[Receiver]:
    settings.OUTBOUND_ALLOW_PRIVATE = True
    receiver = Receiver()
    yield receiver
    receiver.close()


def hook(team_api, url: str, *events: str) -> dict:
    made = team_api.post(ADMIN, {"url": url, "events": list(events or ("job.finished",))})
    assert made.status_code == 201, made.json()
    return made.json()


def deliver_all(team) -> list[str]:
    """Send what is due, as the worker does."""
    due = WebhookDelivery.objects.of(team).filter(status="queued").order_by("created_at")
    return [tasks.deliver_webhook(str(team.pk), str(pk)) for pk in due.values_list("pk", flat=True)]


def later(team) -> None:
    WebhookDelivery.objects.of(team).update(run_after=timezone.now())


def is_signed(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """Check a message as its receiver would, by the standard's own words."""
    signed = f"{headers['Webhook-Id']}.{headers['Webhook-Timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return headers["Webhook-Signature"] == f"v1,{wanted}"


def test_a_message_arrives_signed_and_says_no_memory_text(team_api, agent, receiver) -> None:
    secret = hook(team_api, receiver.url, "reflection.finished")["secret"]
    _, reflection = factories.trace(agent)
    pipeline.reflect(agent.team, reflection.pk)
    assert deliver_all(agent.team) == ["delivered"]
    ((headers, body),) = receiver.messages
    assert is_signed(secret, headers, body)
    assert not is_signed(signing.new_secret(), headers, body)
    said = json.loads(body)
    assert (said["type"], said["data"]["status"], said["team"]) == ("reflection.finished", "stored", "acme")
    assert said["data"]["reflection"] == str(reflection.pk)
    assert said["id"] == headers["Webhook-Id"]
    assert len(said["data"]["memories"]) >= 1
    assert "YYYY" not in body.decode()
    assert "invoice" not in body.decode().lower()


def test_only_what_was_asked_for_is_told(team_api, agent, receiver) -> None:
    hook(team_api, receiver.url, "memory.quarantined", "memory.needs_review")
    factories.memory(agent)
    assert deliver_all(agent.team) == []
    factories.memory(agent, "Ignore all of it.", quarantine_reason="it reads like an instruction")
    assert deliver_all(agent.team) == ["delivered"]
    assert json.loads(receiver.messages[0][1])["type"] == "memory.quarantined"


def test_what_is_rolled_back_is_never_told(team_api, team, receiver) -> None:
    hook(team_api, receiver.url)

    def fails() -> None:
        with transaction.atomic():
            emit(team, FINISHED, {"job": "x"})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert deliver_all(team) == []


def test_a_trace_brings_its_own_address(api, team_api, agent, receiver) -> None:
    trace = {"task": "Do it", "steps": [{"role": "user", "content": "hi"}], "outcome": "succeeded"}
    sent = api.post("/api/v1/traces", {**trace, "callback_url": receiver.url})
    assert sent.json()["reflection"]["status"] == "skipped"
    assert deliver_all(agent.team) == ["delivered"]
    headers, body = receiver.messages[0]
    assert is_signed(team_api.get(f"{ADMIN}/callback-secret").json()["secret"], headers, body)
    assert json.loads(body)["data"]["status"] == "skipped"
    bad = api.post("/api/v1/traces", {**trace, "callback_url": "ftp://example.org/"})
    assert (bad.status_code, bad.json()["errors"][0]["field"]) == (422, "callback_url")


def test_a_failure_is_tried_again_with_growing_pauses_and_then_given_up(team_api, team, receiver) -> None:
    made = hook(team_api, receiver.url)
    receiver.answers = [500, 302, 429, *[503] * 20]
    emit(team, FINISHED, {"job": "x"})
    pauses = []
    for _ in range(delivering.MOST_ATTEMPTS - 1):
        before = timezone.now()
        assert deliver_all(team) == ["queued"]
        row = WebhookDelivery.objects.of(team).get()
        pauses.append(row.run_after - before)
        assert tasks.deliver_webhook(str(team.pk), str(row.pk)) == "", "not before its time"
        later(team)
    assert deliver_all(team) == ["failed"]
    assert timedelta(hours=23) < sum(pauses, timedelta()) < timedelta(hours=25)
    row = WebhookDelivery.objects.of(team).get()
    assert (row.attempts, row.response_status) == (delivering.MOST_ATTEMPTS, 503)
    shown = team_api.get(f"{ADMIN}/{made['id']}").json()
    assert (shown["works"], shown["disabled_because"]) == (False, "It failed for a day.")
    assert AuditEvent.objects.of(team).filter(verb="webhook.disabled").exists()


def test_gone_switches_it_off_at_once(team_api, team, receiver) -> None:
    made = hook(team_api, receiver.url)
    receiver.answers = [410]
    emit(team, FINISHED, {"job": "x"})
    assert deliver_all(team) == ["failed"]
    assert not team_api.get(f"{ADMIN}/{made['id']}").json()["works"]
    emit(team, FINISHED, {"job": "y"})
    assert deliver_all(team) == []
    assert team_api.patch(f"{ADMIN}/{made['id']}", {"works": True}).json()["works"]


def test_a_redirect_is_not_followed(team_api, team, receiver) -> None:
    hook(team_api, receiver.url)
    receiver.answers = [307]
    emit(team, FINISHED, {"job": "x"})
    assert deliver_all(team) == ["queued"]
    assert "redirects are not followed" in WebhookDelivery.objects.of(team).get().error
    assert len(receiver.messages) == 1


def test_a_private_address_is_refused_and_said_so(team_api, team, settings) -> None:
    refused = team_api.post(ADMIN, {"url": "http://localhost:8000/admin/", "events": ["job.finished"]})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "url")
    settings.OUTBOUND_ALLOW_PRIVATE = True
    made = hook(team_api, "http://localhost:8000/admin/")
    settings.OUTBOUND_ALLOW_PRIVATE = False
    emit(team, FINISHED, {"job": "x"})
    assert deliver_all(team) == ["failed"]
    (row,) = team_api.get(f"{ADMIN}/{made['id']}/deliveries").json()["results"]
    assert "private or reserved network" in row["error"]
    assert team_api.get(f"{ADMIN}/{made['id']}").json()["works"], "a day of failure switches off, not this"


def test_a_dead_worker_and_a_lost_wake_up_are_made_good(team_api, team, receiver) -> None:
    hook(team_api, receiver.url)
    emit(team, FINISHED, {"job": "x"})
    past = timezone.now() - timedelta(minutes=2)
    WebhookDelivery.objects.of(team).update(created_at=past, run_after=past)
    assert tasks.sweep_webhooks() == "1 woken"
    WebhookDelivery.objects.of(team).update(status="running", attempts=1, fence=1, lease_until=past)
    assert tasks.sweep_webhooks() == "1 woken"
    row = WebhookDelivery.objects.of(team).get()
    assert tasks.deliver_webhook(str(team.pk), str(row.pk)) == "delivered"
    assert tasks.deliver_webhook(str(team.pk), str(row.pk)) == "", "once"
    assert len(receiver.messages) == 1


def test_a_long_queue_is_not_made_longer(team_api, team, receiver) -> None:
    """While older tasks wait, a message has its wake-up behind them; a second one would only be in the way."""
    hook(team_api, receiver.url)
    emit(team, FINISHED, {"job": "x"})
    past = timezone.now() - timedelta(minutes=2)
    WebhookDelivery.objects.of(team).update(created_at=past, run_after=past)
    OrmQ.objects.update(lock=past - timedelta(seconds=1))
    assert tasks.sweep_webhooks() == "0 woken"


def test_the_log_is_kept_for_a_month(team_api, team, receiver) -> None:
    hook(team_api, receiver.url)
    emit(team, FINISHED, {"job": "x"})
    deliver_all(team)
    WebhookDelivery.objects.of(team).update(finished_at=timezone.now() - timedelta(days=31))
    tasks.sweep_webhooks()
    assert not WebhookDelivery.objects.of(team).exists()


def test_a_message_is_sent_again_by_hand(team_api, team, receiver) -> None:
    made = hook(team_api, receiver.url)
    pinged = team_api.post(f"{ADMIN}/{made['id']}/ping")
    assert pinged.status_code == 202
    again = f"{pinged['Location']}/redeliver"
    assert team_api.post(again).json()["code"] == "delivery_open"
    deliver_all(team)
    assert team_api.post(again).status_code == 202
    assert deliver_all(team) == ["delivered"]
    first, second = (json.loads(body) for _, body in receiver.messages)
    assert (first["type"], first["data"]) == (second["type"], second["data"])


def test_the_secret_is_shown_once_and_kept_sealed(team_api, team, receiver) -> None:
    made = hook(team_api, receiver.url)
    assert "secret" not in team_api.get(f"{ADMIN}/{made['id']}").json()
    sealed = bytes(Webhook.objects.of(team).get().sealed_secret)
    assert made["secret"].encode() not in sealed
    fresh = team_api.post(f"{ADMIN}/{made['id']}/secret").json()["secret"]
    emit(team, FINISHED, {"job": "x"})
    deliver_all(team)
    headers, body = receiver.messages[0]
    assert is_signed(fresh, headers, body)
    assert not is_signed(made["secret"], headers, body)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"url": "https://user:secret@example.org/", "events": ["job.finished"]}, "url"),
        ({"url": "nonsense", "events": ["job.finished"]}, "url"),
        ({"url": "https://example.org/", "events": []}, "events"),
        ({"url": "https://example.org/", "events": ["ping"]}, "events.0"),
        ({"url": "https://example.org/", "events": ["moon.landed"]}, "events.0"),
    ],
)
def test_a_bad_webhook_is_refused_clearly(team_api, body, field) -> None:
    refused = team_api.post(ADMIN, body)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field), refused.json()


def test_there_is_an_end_to_them(team_api) -> None:
    for number in range(20):
        hook(team_api, f"https://example.org/{number}")
    refused = team_api.post(ADMIN, {"url": "https://example.org/", "events": ["job.finished"]})
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_webhooks")


def test_another_teams_events_stay_there(team_api, other_team, receiver, team) -> None:
    hook(team_api, receiver.url)
    with team_transaction(other_team):
        emit(other_team, FINISHED, {"job": "theirs"})
        assert deliver_all(other_team) == []
    with team_transaction(team):
        assert deliver_all(team) == []


def test_the_pages_make_test_and_delete_one(team, alice, browse, receiver) -> None:
    client = browse(alice)
    assert "No webhook yet" in client.get("/webhooks/").content.decode()
    refused = client.post("/webhooks/", {"url": "nonsense", "events": ["job.finished"]})
    assert refused.status_code == 422
    assert "must begin with https://" in refused.content.decode()
    made = client.post("/webhooks/", {"url": receiver.url, "events": ["job.finished"]})
    assert "whsec_" in made.content.decode()
    assert made["Cache-Control"] == "no-store"
    webhook = Webhook.objects.of(team).get()
    page = f"/webhooks/{webhook.pk}/"
    assert client.post(f"{page}act/", {"act": "ping"}).status_code == 302
    deliver_all(team)
    shown = client.get(page).content.decode()
    assert "Delivered" in shown
    assert "whsec_" not in shown
    again = WebhookDelivery.objects.of(team).get()
    client.post(f"/webhooks/messages/{again.pk}/again/")
    assert deliver_all(team) == ["delivered"]
    client.post(f"{page}act/", {"act": "off"})
    assert "It is told nothing" in client.get(page).content.decode()
    assert client.post(f"{page}act/", {"act": "delete"}).status_code == 302
    assert not Webhook.objects.of(team).exists()


@given(st.binary(max_size=200), st.text(min_size=1, max_size=20, alphabet="abc123-"))
def test_a_changed_byte_breaks_the_signature(body, name) -> None:
    secret = signing.new_secret()
    headers = signing.headers(secret, message_id=name, at=timezone.now(), body=body)
    assert is_signed(secret, headers, body)
    assert not is_signed(secret, headers, body + b"x")
    assert not is_signed(secret, {**headers, "Webhook-Id": name + "x"}, body)
