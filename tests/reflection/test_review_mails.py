"""Mails about the review: to whom, when, what they say, never twice, and ended by one click."""

from __future__ import annotations

import re
import smtplib
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django_q.models import OrmQ

from hindsight_site.accounts import actions as accounts
from hindsight_site.accounts import mail_choices
from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.enums import MailKind
from hindsight_site.accounts.models import Membership, Team, User
from hindsight_site.accounts.tenancy import team_transaction
from memories.models import Memory
from reflection import tasks
from reflection.enums import BatchStatus, Decision, ItemState, MailStatus, Stratum
from reflection.models import ReviewBatch, ReviewItem, ReviewMail, Verdict
from reflection.review import letters, mails
from reflection.review.sampling import open_batch
from reflection.review.verdicts import decide
from tests import factories

pytestmark = pytest.mark.django_db
HERE = "tests.reflection.test_review_mails."
MONDAY = datetime(2026, 11, 30, 6, 10, tzinfo=UTC)
FRIDAY = datetime(2026, 12, 4, 10, tzinfo=UTC)
SECRET = "The invoices of Zanzibar are exported as CSV"


@pytest.fixture
def memories(agent) -> list[Memory]:
    made = [factories.memory(agent, f"{SECRET} on day {number}, by squad {number % 3}.") for number in range(6)]
    with team_transaction(agent.team):
        Memory.objects.of(agent.team).update(created_at=MONDAY - timedelta(days=2))
    return made


@pytest.fixture
def batch(team: Team, memories) -> ReviewBatch:
    """The week that opened on MONDAY; it stays open, so that these tests hold in any year."""
    with team_transaction(team):
        opened = open_batch(team=team, by=SYSTEM, at=MONDAY)
        opened.closes_at = datetime(2100, 1, 1, tzinfo=UTC)
        opened.save(update_fields=["closes_at"])
        return opened


def rows(team: Team, **only: Any) -> list[ReviewMail]:
    with team_transaction(team):
        return list(ReviewMail.objects.of(team).filter(**only).select_related("user").order_by("user__email", "kind"))


def send_all(team: Team) -> list[str]:
    return [tasks.send_review_mail(str(team.pk), str(row.pk)) for row in rows(team)]


def judge(team: Team, reviewer: User, items: list[ReviewItem], decision: str = Decision.APPROVE) -> None:
    with team_transaction(team):
        for item in items:
            fresh = ReviewItem.objects.of(team).select_related("batch", "memory", "team").get(pk=item.pk)
            decide(
                team=team, by=person(reviewer), reviewer=reviewer, item=fresh, decision=decision, version=fresh.version
            )


def items_of(team: Team, batch: ReviewBatch) -> list[ReviewItem]:
    with team_transaction(team):
        ReviewItem.objects.of(team).filter(batch=batch).update(quorum=1)
        return list(ReviewItem.objects.of(team).filter(batch=batch).order_by("position"))


# --- The invitation ------------------------------------------------------------------------------------------


def test_those_who_review_are_invited_when_the_week_opens(team, alice, bob, carol, batch) -> None:
    assert mails.queue_due(MONDAY + timedelta(minutes=20)) == "2 queued"
    assert [row.user for row in rows(team)] == [alice, bob]
    assert send_all(team) == [MailStatus.SENT, MailStatus.SENT]
    assert [one.to for one in mail.outbox] == [[alice.email], [bob.email]]


def test_it_says_how_many_how_long_and_until_when_and_no_memory(team, alice, batch) -> None:
    Team.objects.filter(pk=team.pk).update(time_zone="Asia/Shanghai")
    mails.queue_due(MONDAY + timedelta(minutes=20))
    send_all(team)
    (one,) = mail.outbox
    html = one.alternatives[0][0]
    assert one.subject == "6 memories await you in this week’s review, about 3 minutes"
    for text in (one.body, html):
        assert "Week 49 of 2026 of Acme" in text
        assert "Asia/Shanghai" in text
        assert reverse("review") in text
        assert "Zanzibar" not in text
        assert "Zanzibar" not in str(one.message())
    assert one.extra_headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert re.fullmatch(r"<http.+/mails/off/.+/>", one.extra_headers["List-Unsubscribe"])


def test_nobody_is_told_twice(team, alice, bob, batch) -> None:
    for minutes in (20, 50, 80):
        mails.queue_due(MONDAY + timedelta(minutes=minutes))
        send_all(team)
    assert len(mail.outbox) == 2


def test_a_wakeup_goes_into_the_queue_with_the_row(team, alice, batch) -> None:
    mails.queue_due(MONDAY + timedelta(minutes=20))
    (row,) = rows(team)
    tasks_queued = [one.task for one in OrmQ.objects.all()]
    assert [str(row.pk)] == [one["args"][1] for one in tasks_queued if one["func"] == mails.SEND]


def test_who_has_nothing_left_to_do_or_no_confirmed_address_is_not_mailed(team, alice, bob, batch) -> None:
    dave = factories.member(team, "dave@acme.test", "admin")
    items = items_of(team, batch)
    with team_transaction(team):  # of these dave can tell nothing: they are left to others
        Verdict.objects.bulk_create(
            Verdict(
                team=team, item=item, reviewer=dave, memory_revision=1, decision=Decision.CANNOT_TELL,
                before={"skips": 2},
            )
            for item in items
        )  # fmt: skip
    bob.emailaddress_set.update(verified=False)
    assert mails.queue_due(MONDAY + timedelta(minutes=20)) == "1 queued"
    assert [row.user for row in rows(team)] == [alice]


def test_a_week_that_is_no_news_or_nearly_over_invites_nobody(team, alice, batch) -> None:
    assert mails.queue_due(MONDAY + timedelta(days=2)) == "0 queued"
    with team_transaction(team):
        ReviewBatch.objects.of(team).update(closes_at=MONDAY + timedelta(hours=8))
    assert mails.queue_due(MONDAY + timedelta(hours=1)) == "0 queued"
    assert mails.queue_due(MONDAY + timedelta(hours=9)) == "0 queued"


def test_a_suspended_team_is_left_alone(team, alice, batch) -> None:
    mails.queue_due(MONDAY + timedelta(minutes=20))
    Team.objects.filter(pk=team.pk).update(suspended_at=timezone.now())
    assert send_all(team) == ["gone"]
    assert mails.queue_due(MONDAY + timedelta(minutes=50)) == "0 queued"
    assert not mail.outbox


# --- On Friday ------------------------------------------------------------------------------------------------


def test_on_friday_those_with_something_left_are_reminded_of_a_week_that_is_behind(team, alice, bob, batch) -> None:
    items = items_of(team, batch)
    judge(team, bob, items[:2])
    assert mails.queue_due(FRIDAY - timedelta(days=1)) == "0 queued"
    assert mails.queue_due(FRIDAY.replace(hour=5)) == "0 queued"
    assert mails.queue_due(FRIDAY) == "2 queued"
    assert {row.kind for row in rows(team)} == {MailKind.REVIEW_REMINDER}
    send_all(team)
    assert mail.outbox[0].subject.startswith("The review closes soon: 4 memories await you")
    assert "2 of 6 memories" in mail.outbox[0].body


def test_a_week_that_is_half_done_needs_no_reminder(team, alice, bob, batch) -> None:
    judge(team, bob, items_of(team, batch)[:3])
    assert mails.queue_due(FRIDAY) == "0 queued"


# --- Flagged, and drift -----------------------------------------------------------------------------------------


def test_a_flag_as_sensitive_is_told_to_those_who_manage(team, alice, bob, batch) -> None:
    judge(team, bob, items_of(team, batch)[:1], Decision.SENSITIVE)
    mails.queue_due(timezone.now())
    (row,) = rows(team, kind=MailKind.FLAGGED_SENSITIVE)
    assert row.user == alice
    tasks.send_review_mail(str(team.pk), str(row.pk))
    (sent,) = mail.outbox
    assert "flagged" in sent.subject
    assert reverse("quarantine") in sent.body
    assert "Zanzibar" not in str(sent.message())


@pytest.fixture
def history(team: Team, agent, bob) -> str:
    """Eight weeks with 27 of 30 accepted, and a last one with 12 of 30. Returns its name."""
    drawn = [factories.memory(agent, f"Service {number} listens on port {number * 7}.") for number in range(30)]
    now, week = MONDAY, ""
    with team_transaction(team):
        for back in range(9, 0, -1):
            closes = now.replace(hour=0, minute=0) - timedelta(weeks=back - 1)
            year, number, _ = (closes - timedelta(days=3)).isocalendar()
            week = f"{year}-W{number:02}"
            past = ReviewBatch.objects.create(
                team=team, week=week, status=BatchStatus.CLOSED, opens_at=closes - timedelta(days=6), closes_at=closes,
                seed="00", population={},
            )  # fmt: skip
            items = ReviewItem.objects.bulk_create(
                ReviewItem(
                    team=team, batch=past, memory=memory, memory_revision=1, stratum=Stratum.RANDOM,
                    inclusion_probability=1, position=position, state=ItemState.DECIDED,
                )
                for position, memory in enumerate(drawn)
            )  # fmt: skip
            good = 12 if back == 1 else 27
            Verdict.objects.bulk_create(
                Verdict(
                    team=team, item=item, reviewer=bob, memory_revision=1, created_at=past.opens_at,
                    decision=Decision.APPROVE if place < good else Decision.DEMOTE,
                )
                for place, item in enumerate(items)
            )  # fmt: skip
    return week


def test_a_week_out_of_its_usual_range_is_told_to_those_who_manage(team, alice, bob, history) -> None:
    morning = MONDAY.replace(hour=9)
    assert mails.queue_due(morning) == "1 queued"
    (row,) = rows(team)
    assert (row.kind, row.about, row.user) == (MailKind.REVIEW_DRIFT, history, alice)
    with team_transaction(team):
        letter = letters.compose(team, alice, row.kind, row.about, morning)
    assert letter is not None
    assert letter.subject == "Fewer memories accepted than usual: 40% in week 48 of 2026"
    assert "12 of 30" in letter.lines[0]
    assert "outside 3 sigma" in letter.lines[1]
    assert mails.queue_due(morning + timedelta(hours=1)) == "0 queued"


def test_a_week_that_got_better_alarms_nobody(team, alice, history) -> None:
    with team_transaction(team):
        last = ReviewBatch.objects.of(team).get(week=history)
        Verdict.objects.of(team).filter(item__batch=last).update(decision=Decision.APPROVE)
        Verdict.objects.of(team).exclude(item__batch=last).update(decision=Decision.DEMOTE)
        assert letters.drift_of(team, history, MONDAY.replace(hour=9)) is None


# --- Never twice, whatever dies ------------------------------------------------------------------------------------


class Refusing(EmailBackend):
    """A mail server that says no to every mail."""

    def send_messages(self, messages: Any) -> int:
        raise smtplib.SMTPDataError(451, b"try later")


class Unreachable(EmailBackend):
    def open(self) -> None:
        raise ConnectionRefusedError


class Broken(EmailBackend):
    """A line that breaks after the mail went out."""

    def send_messages(self, messages: Any) -> int:
        super().send_messages(messages)
        raise smtplib.SMTPServerDisconnected("gone")


@pytest.fixture
def queued(team, alice, batch) -> ReviewMail:
    mails.queue_due(MONDAY + timedelta(minutes=20))
    (row,) = rows(team)
    return row


@pytest.mark.parametrize("backend", ["Refusing", "Unreachable"])
def test_what_the_server_did_not_take_is_tried_again(team, queued, settings, backend) -> None:
    usual = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND = HERE + backend
    assert send_all(team) == [MailStatus.QUEUED]
    (row,) = rows(team)
    assert row.attempts == 1
    assert "mail server" in row.error
    settings.EMAIL_BACKEND = usual
    OrmQ.objects.all().delete()
    mails.queue_due(row.changed_at + mails.PAUSE + timedelta(minutes=1))
    assert OrmQ.objects.count() == 1
    assert send_all(team) == [MailStatus.SENT]
    assert len(mail.outbox) == 1


def test_a_server_that_always_refuses_is_given_up(team, queued, settings) -> None:
    settings.EMAIL_BACKEND = HERE + "Refusing"
    states = [send_all(team)[0] for _ in range(mails.MOST_ATTEMPTS)]
    assert states == [MailStatus.QUEUED] * (mails.MOST_ATTEMPTS - 1) + [MailStatus.FAILED]
    assert send_all(team) == [""]


def test_what_may_have_arrived_is_not_sent_again(team, queued, settings) -> None:
    usual = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND = HERE + "Broken"
    assert send_all(team) == [MailStatus.FAILED]
    settings.EMAIL_BACKEND = usual
    mails.queue_due(MONDAY + timedelta(hours=2))
    assert send_all(team) == [""]
    assert len(mail.outbox) == 1


def test_a_worker_that_died_while_sending_is_not_followed_by_another(team, queued) -> None:
    with team_transaction(team):
        claimed = {"status": MailStatus.SENDING, "attempts": 1, "changed_at": MONDAY + timedelta(minutes=21)}
        ReviewMail.objects.of(team).update(**claimed)
    assert send_all(team) == [""]
    mails.queue_due(MONDAY + timedelta(hours=1))
    (row,) = rows(team)
    assert row.status == MailStatus.FAILED
    assert send_all(team) == [""]
    assert not mail.outbox


def test_a_lost_wakeup_is_made_up_for(team, queued) -> None:
    OrmQ.objects.all().delete()
    mails.queue_due(queued.changed_at + timedelta(minutes=30))
    assert [one.task["args"][1] for one in OrmQ.objects.all()] == [str(queued.pk)]


def test_who_left_or_finished_meanwhile_is_not_mailed(team, alice, bob, batch) -> None:
    mails.queue_due(MONDAY + timedelta(minutes=20))
    with team_transaction(team):
        Membership.objects.of(team).filter(user=bob).delete()
    judge(team, alice, items_of(team, batch))
    assert send_all(team) == [MailStatus.DROPPED, MailStatus.DROPPED]
    assert not mail.outbox


def test_another_teams_rows_are_not_there(team, other_team, queued) -> None:
    assert tasks.send_review_mail(str(other_team.pk), str(queued.pk)) == ""
    assert rows(other_team) == []


# --- Ended by one click ------------------------------------------------------------------------------------------


def test_one_click_ends_one_kind_without_logging_in(team, alice, queued) -> None:
    send_all(team)
    link = mail.outbox[0].extra_headers["List-Unsubscribe"].strip("<>")
    program = Client(enforce_csrf_checks=True)
    path = urlsplit(link).path
    assert program.get(path).status_code == 200
    alice.refresh_from_db()
    assert alice.mails_off == [], "looking must end nothing: scanners follow links"
    assert program.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
    alice.refresh_from_db()
    assert alice.mails_off == [MailKind.REVIEW_OPENED]
    assert "no more of these" in program.get(path).content.decode()


def test_what_is_switched_off_is_not_sent(team, alice, queued) -> None:
    mail_choices.switch_off(person=alice, kind=MailKind.REVIEW_OPENED)
    assert send_all(team) == [MailStatus.DROPPED]
    bob = factories.member(team, "bob@acme.test", "reviewer")
    mails.queue_due(MONDAY + timedelta(hours=1))
    assert [row.user for row in rows(team, status=MailStatus.QUEUED)] == [bob]


@pytest.mark.parametrize("token", ["x", "WzEsInJldmlldyJd:1vXYZ:abc"])
def test_a_forged_link_ends_nothing(alice, token) -> None:
    response = Client().post(reverse("unsubscribe", args=[token]))
    assert response.status_code == 404
    alice.refresh_from_db()
    assert alice.mails_off == []


def test_the_account_page_chooses(browse, alice) -> None:
    client = browse(alice)
    assert client.get(reverse("account")).content.decode().count('name="mails"') == len(MailKind)
    client.post(reverse("choose_mails"), {"mails": [MailKind.REVIEW_DRIFT, "nonsense"]})
    alice.refresh_from_db()
    assert set(alice.mails_off) == set(MailKind) - {MailKind.REVIEW_DRIFT}
    client.post(reverse("choose_mails"), {"mails": MailKind.values})
    alice.refresh_from_db()
    assert alice.mails_off == []


# --- The link opens the team that the mail is about --------------------------------------------------------------


def link_of(team: Team) -> str:
    send_all(team)
    found = re.search(r"https?://\S+/team/\S+", mail.outbox[0].body)
    assert found, mail.outbox[0].body
    return urlsplit(found[0]).path


@pytest.fixture
def elsewhere(alice) -> Team:
    """A second team of alice's."""
    return accounts.create_team(by=SYSTEM, name="Elsewhere", owner=alice)


def work_in(client: Client, team: Team) -> None:
    assert client.post(reverse("switch_team"), {"team": str(team.pk)}).status_code == 302


def test_the_link_switches_to_its_team_and_says_so(team, elsewhere, alice, queued, browse) -> None:
    page = browse(alice)
    work_in(page, elsewhere)
    seen = page.get(link_of(team), follow=True)
    assert seen.redirect_chain == [(reverse("review"), 302)]
    assert seen.context["team"] == team
    assert f"You are now in {team.name}" in seen.content.decode()
    assert page.get(reverse("overview")).context["team"] == team, "and there they stay"


def test_in_the_same_team_there_is_nothing_to_say(team, alice, queued, browse) -> None:
    seen = browse(alice).get(link_of(team), follow=True)
    assert seen.status_code == 200
    assert "You are now in" not in seen.content.decode()


def test_whoever_left_the_team_is_not_led_into_it(team, elsewhere, alice, queued, browse) -> None:
    path = link_of(team)
    factories.member(team, "heir@acme.test", "owner")
    with team_transaction(team):
        Membership.objects.of(team).filter(user=alice).delete()
    page = browse(alice)
    assert page.get(path).status_code == 404
    assert page.get(reverse("overview")).context["team"] == elsewhere


def test_it_leads_to_pages_of_mails_only(team, alice, browse) -> None:
    assert browse(alice).get(reverse("mail_link", args=[team.pk, "delete_team"])).status_code == 404


def test_without_a_log_in_it_asks_for_one_first(team, queued) -> None:
    path = link_of(team)
    answer = Client().get(path)
    assert answer.headers["Location"] == f"{reverse('login')}?next={path}"
