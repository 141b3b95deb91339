"""What a team's policy keeps no longer is deleted; all else stays."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from hindsight_site.accounts.audit import SYSTEM
from hindsight_site.accounts.models import AuditEvent, Team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.refusals import Invalid
from memories import actions
from memories.models import Feedback, Memory, Recall, RecallHit
from reflection import pipeline, retention
from reflection.models import ReviewMail, Trace
from reflection.review import mail_purging
from tests import factories

pytestmark = pytest.mark.django_db
NOW = timezone.now()
LONG_AGO = NOW - timedelta(days=40)


def keep(team: Team, **days: float) -> None:
    with team_transaction(team):
        actions.change_policy(team=team, by=SYSTEM, changes={f"keep.{name}": value for name, value in days.items()})


@pytest.fixture
def past(team, agent, api) -> Memory:
    """An old trace and an old receipt with feedback, and one of each from today."""
    old, reflection = factories.trace(agent)
    pipeline.reflect(team, reflection.pk)
    factories.trace(agent, task="Export the April invoices as CSV")
    memory = factories.memory(agent, "Invoices are exported as CSV.")
    asked = [api.post("/api/v1/recall", {"query": "export invoices", "min_relevance": 0}).json() for _ in range(2)]
    told = {"recall_id": asked[0]["recall_id"], "items": [{"memory": str(memory.pk), "adopted": True}]}
    assert api.post("/api/v1/feedback", told).status_code == 200
    with team_transaction(team):
        Trace.objects.of(team).filter(pk=old.pk).update(created_at=LONG_AGO, ended_at=LONG_AGO)
        Recall.objects.of(team).filter(pk=asked[0]["recall_id"]).update(created_at=LONG_AGO)
    return memory


def counts(team: Team) -> tuple[int, int, int]:
    with team_transaction(team):
        return tuple(rows.objects.of(team).count() for rows in (Trace, Recall, Feedback))


def test_everything_is_kept_unless_the_team_says_otherwise(team, past) -> None:
    assert retention.purge(NOW) == "0 traces, 0 receipts and 0 notes of mails deleted"
    assert counts(team) == (2, 2, 1)


def test_what_is_too_old_goes_and_what_was_learnt_stays(team, past) -> None:
    with team_transaction(team):
        memories, reuse = Memory.objects.of(team).count(), Memory.objects.of(team).get(pk=past.pk).reuse_count
    keep(team, traces=30, receipts=30)
    assert retention.purge(NOW) == "1 traces, 1 receipts and 0 notes of mails deleted"
    assert counts(team) == (1, 1, 0)
    with team_transaction(team):
        assert Memory.objects.of(team).count() == memories
        assert Memory.objects.of(team).get(pk=past.pk).reuse_count == reuse
        assert RecallHit.objects.of(team).values("recall").distinct().count() == 1
        verbs = set(AuditEvent.objects.of(team).filter(actor_label="retention").values_list("verb", flat=True))
        assert verbs == {"trace.deleted", "recalls.purged"}
    assert retention.purge(NOW) == "0 traces, 0 receipts and 0 notes of mails deleted"


def test_another_team_keeps_its_own(team, other_team, past) -> None:
    keep(other_team, traces=30, receipts=30)
    retention.purge(NOW)
    assert counts(team) == (2, 2, 1)


def test_a_few_days_are_taken_for_a_slip(team) -> None:
    with pytest.raises(Invalid) as refusal:
        keep(team, traces=1)
    assert refusal.value.errors[0].field == "keep.traces"


def test_notes_of_mails_go_once_nobody_can_be_told_again(team, alice) -> None:
    long_ago = NOW - mail_purging.KEPT - timedelta(hours=1)
    rows = [("2025-W01", "sent", long_ago), ("2025-W02", "failed", long_ago), ("2025-W03", "queued", long_ago)]
    rows.append(("2026-W01", "sent", NOW - timedelta(days=8)))
    with team_transaction(team):
        for about, status, moment in rows:
            ReviewMail.objects.create(
                team=team, user=alice, kind="review_opened", about=about, status=status, changed_at=moment
            )
    assert retention.purge(NOW) == "0 traces, 0 receipts and 2 notes of mails deleted"
    with team_transaction(team):
        assert set(ReviewMail.objects.of(team).values_list("about", flat=True)) == {"2025-W03", "2026-W01"}
        event = AuditEvent.objects.of(team).get(verb="review.mails_purged")
    assert (event.actor_label, event.detail["count"]) == ("retention", 2)


def test_a_team_that_fails_keeps_no_other_from_its_turn(team, other_team, past, caplog) -> None:
    """The database itself says no to one of them, whichever comes first."""
    keep(team, traces=30, receipts=30)
    keep(other_team, traces=30)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION pg_temp.no() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN IF OLD.team_id = '{other_team.pk}' THEN RAISE 'no'; END IF; RETURN OLD; END $$"
        )
        cursor.execute("CREATE TRIGGER no BEFORE DELETE ON reflection_trace FOR EACH ROW EXECUTE FUNCTION pg_temp.no()")
    theirs, _ = factories.trace(factories.agent(other_team, "theirs"))
    with team_transaction(other_team):
        Trace.objects.of(other_team).filter(pk=theirs.pk).update(created_at=LONG_AGO, ended_at=LONG_AGO)
    for _ in range(5):  # the order of the teams is drawn
        told = retention.purge(NOW)
        assert told.endswith("; 1 teams failed")
    assert counts(team) == (1, 1, 0)
    with team_transaction(other_team):
        assert Trace.objects.of(other_team).count() == 1
    failed = [record for record in caplog.records if record.message == "what is too old was not deleted"]
    assert {record.team for record in failed} == {str(other_team.pk)}
