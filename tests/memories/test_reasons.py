"""What people and agents write as reasons is masked, kept beside the audit, and goes with what it was about."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from hindsight_site.accounts.enums import JobStatus
from hindsight_site.accounts.jobs import running
from hindsight_site.accounts.models import AuditEvent, AuditReason
from hindsight_site.accounts.tenancy import team_transaction
from memories.actions import forget
from memories.models import Memory, Revision
from reflection.erasing.asking import request_erasure
from reflection.erasing.targets import target_of
from reflection.invariants.checks import CHECKS
from reflection.tasks import HANDLERS
from tests import factories

pytestmark = pytest.mark.django_db
REASON = "Zebediah Quill told us about the purple ledger; write to zeb@corp.test"


@pytest.fixture
def memory(agent) -> Memory:
    return factories.memory(agent, "The ledger is closed on Fridays.", kind="fact")


def patch(api, memory: Memory, **fields) -> None:
    body = {"content": "It closes on Mondays.", "reason": REASON, **fields}
    answer = api.patch(f"/api/v1/memories/{memory.pk}", body)
    assert answer.status_code == 200, answer.json()


def test_a_reason_is_masked_once_and_readable_until_it_is_forgotten(api, team_api, memory, browse, alice) -> None:
    patch(api, memory)
    with team_transaction(memory.team):
        kept = AuditReason.objects.of(memory.team).get()
        revision = Revision.objects.of(memory.team).get(memory=memory)
        event = AuditEvent.objects.of(memory.team).get(verb="memory.revised")
    assert kept.words == revision.reason == REASON.replace("zeb@corp.test", "<EMAIL_1>")
    assert "Zebediah" not in str(event.detail)
    assert event.detail["reason_fingerprint"]
    (row,) = team_api.get("/api/v1/audit?verb=memory.revised").json()["results"]
    assert row["reason"] == kept.words
    assert "purple ledger" in browse(alice).get("/audit/?verb=memory.revised").content.decode()


@pytest.mark.parametrize("verb", ["approve", "demote", "archive"])
def test_reasons_of_judgements_are_kept_beside_the_audit_too(team_api, memory, verb) -> None:
    answer = team_api.post(f"/api/v1/memories/{memory.pk}/{verb}", {"reason": REASON})
    assert answer.status_code == 200, answer.json()
    with team_transaction(memory.team):
        assert AuditReason.objects.of(memory.team).get().words.startswith("Zebediah")
        assert "Zebediah" not in str(list(AuditEvent.objects.of(memory.team).values()))


def test_forgetting_takes_the_reasons_and_leaves_the_events(api, team_api, agent, memory, browse, alice) -> None:
    other = factories.memory(agent, "The archive is open all week.", kind="fact")
    patch(api, memory)
    patch(api, other, content="The archive is open on weekdays.")
    with team_transaction(memory.team):
        forget(team=memory.team, by=factories.SYSTEM, memory=memory, reason="It was asked for.")
        kept = AuditReason.objects.of(memory.team).values_list("verb", "object_id")
        assert set(kept) == {("memory.forgotten", str(memory.pk)), ("memory.revised", str(other.pk))}
        assert not [check.name for check in CHECKS if check.broken(memory.team).exists()]
    told = team_api.get(f"/api/v1/audit?object_type=memory&object_id={memory.pk}").json()["results"]
    assert {row["verb"]: row["reason"] for row in told}["memory.revised"] is None
    assert {row["verb"]: row["reason"] for row in told}["memory.forgotten"] == "It was asked for."
    page = browse(alice).get(f"/audit/?kind=memory&object={memory.pk}").content.decode()
    assert "Deleted with what it was about." in page
    assert "purple ledger" not in page


def test_what_is_left_of_a_forgotten_memory_is_found_and_mended(api, memory, capsys) -> None:
    patch(api, memory)
    with team_transaction(memory.team):
        forget(team=memory.team, by=factories.SYSTEM, memory=memory)
        event = AuditEvent.objects.of(memory.team).filter(verb="memory.revised").get()
        AuditReason.objects.create(
            team=memory.team, event_id=event.pk, verb=event.verb, object_type="memory", object_id=str(memory.pk),
            words=REASON,
        )  # fmt: skip
        broken = [check.name for check in CHECKS if check.broken(memory.team).exists()]
    assert broken == ["forgotten_with_remains"]
    call_command("check_invariants", repair=True)
    with team_transaction(memory.team):
        assert not AuditReason.objects.of(memory.team).exists()


def test_an_erasure_by_text_reaches_reasons(api, memory) -> None:
    patch(api, memory)
    target = target_of("text", ["Zebediah Quill"])
    with team_transaction(memory.team):
        job = request_erasure(team=memory.team, by=factories.SYSTEM, target=target, confirmation="erase")
    while running.run(memory.team, job.pk, HANDLERS) == JobStatus.QUEUED:
        pass
    with team_transaction(memory.team):
        assert not AuditReason.objects.of(memory.team).exists()
        assert AuditEvent.objects.of(memory.team).filter(verb="memory.revised").exists()
