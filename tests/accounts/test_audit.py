"""Every write leaves its event: who, on what, from which state to which, in which request."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import FunctionType, ModuleType
from typing import Any

import pytest
from django.utils import timezone

import hindsight_site.accounts
import memories as memories_app
import reflection as reflection_app
from hindsight_site.accounts import actions as accounts
from hindsight_site.accounts import audit, connected_clients, deletion, invitations, people
from hindsight_site.accounts.audit import SYSTEM, person
from hindsight_site.accounts.enums import DeliveryStatus, JobKind
from hindsight_site.accounts.jobs import actions as jobs
from hindsight_site.accounts.models import (
    Agent,
    ApiToken,
    AuditEvent,
    AuthorizationCode,
    Invitation,
    Membership,
    Team,
    User,
    Webhook,
    WebhookDelivery,
)
from hindsight_site.accounts.oauth_clients import Client
from hindsight_site.accounts.permissions import ROLES_IN_GIFT
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.accounts.webhooks import actions as webhooks
from hindsight_site.middleware import current_request_id
from memories import actions as memories
from memories import receipt_purging, scopes
from memories.actions import Draft, EvidenceDraft, FeedbackItem, conflicts
from memories.actions.changing import governed
from memories.actions.merging import withdraw_origin
from memories.enums import Kind, RelationKind, Status
from memories.lifecycle.sweep import sweep
from memories.models import Evidence, Memory, Recall, Relation
from memories.reembedding_job import request_reembedding
from memories.search.vectors import VectorHit
from reflection import actions as reflection
from reflection import model_choice
from reflection.consolidation.job import request_consolidation_job
from reflection.drafts import StepDraft, TraceDraft
from reflection.erasing.asking import request_erasure
from reflection.erasing.targets import Target
from reflection.exporting.running import request_export
from reflection.importing.running import request_import
from reflection.invariants.checks import CHECKS
from reflection.invariants.repairs import repair
from reflection.models import ReviewBatch, ReviewItem, ReviewMail, Trace
from reflection.review import bulk, mail_purging, sampling, settling, turns, verdicts
from tests import factories
from tests.factories import ALL_SCOPES

pytestmark = pytest.mark.django_db
REQUEST = "a-request-of-ours"
GIFT = ROLES_IN_GIFT["owner"]
HOOKS = "hindsight_site.accounts.webhooks.actions"


@dataclass(frozen=True)
class Cast:
    """Whom and what the calls below act on."""

    team: Team
    alice: User
    agent: Agent
    token: ApiToken
    memory: Memory
    trace: Trace
    recall: Recall

    @property
    def who(self) -> dict[str, Any]:
        return {"team": self.team, "by": person(self.alice)}

    @property
    def draft(self) -> Draft:
        return Draft(kind=Kind.FACT, content="The build wants two cores and four gigabytes.")

    def evidence(self) -> EvidenceDraft:
        step = self.trace.steps.first()
        return EvidenceDraft(self.trace.pk, step.pk, step.sequence, step.role, 0, 6, step.content[:6])

    def other(self, **fields: Any) -> Memory:
        return factories.memory(self.agent, "Deploys happen on Tuesdays, after the stand-up.", **fields)

    def opened(self) -> Trace:
        return factories.trace(self.agent, outcome="")[0]

    def held(self) -> Memory:
        memory = self.other()
        return memories.quarantine(team=self.team, by=SYSTEM, memory=memory, reason="looks odd")

    def conflict(self) -> Relation:
        for name in ("main", "develop"):
            factories.memory(self.agent, f"The default branch is {name}.")
        return Relation.objects.of(self.team).get(kind=RelationKind.CONTRADICTS)

    def settled(self) -> Relation:
        conflict = self.conflict()
        memories.settle_conflict(team=self.team, by=SYSTEM, conflict=conflict, decision="neither")
        return conflict

    def changed_side(self) -> Memory:
        side = self.conflict().source
        Memory.objects.filter(pk=side.pk).update(content="Branches are deleted after a merge.")
        return Memory.objects.get(pk=side.pk)

    def opposite(self) -> Memory:
        other = self.other()
        Memory.objects.filter(pk=other.pk).update(content="Run the migrations after the tests.")
        return Memory.objects.get(pk=other.pk)

    def near(self) -> list[VectorHit]:
        return [VectorHit(self.memory.pk, 0.9)]

    def merged(self) -> Memory:
        draft = Draft(kind=Kind.FACT, content="Migrate first.", evidence=(self.evidence(),))
        return memories.confirm(team=self.team, by=SYSTEM, memory=self.memory, draft=draft)

    def origin(self) -> Memory:
        origin, draft = self.other(), Draft(kind=Kind.FACT, content="Migrate first.", evidence=(self.evidence(),))
        memories.confirm(team=self.team, by=SYSTEM, memory=self.memory, draft=draft, origin_id=origin.pk)
        return origin

    def scope(self) -> Any:
        return scopes.create_shared(team=self.team, by=SYSTEM, slug="billing", name="Billing")

    def member(self, email: str = "bob@acme.test", role: str = "viewer") -> Membership:
        return Membership.objects.of(self.team).get(user=factories.member(self.team, email, role))

    def own_membership(self) -> Membership:
        return Membership.objects.of(self.team).get(user=self.alice)

    def invitation(self) -> Invitation:
        invited = invitations.invite(
            team=self.team, by=SYSTEM, email="nina@new.test", role="viewer", allowed=GIFT, inviter=self.alice
        )
        Invitation.objects.of(self.team).update(sent_at=timezone.now() - timedelta(hours=1))
        invited.refresh_from_db()
        return invited

    def webhook(self) -> Webhook:
        return webhooks.create_webhook(
            team=self.team, by=SYSTEM, url="https://hooks.acme.test/", events=["job.finished"]
        )[0]

    def delivery(self) -> WebhookDelivery:
        sent = webhooks.ping(team=self.team, by=SYSTEM, webhook=self.webhook())
        sent.status = DeliveryStatus.DELIVERED
        sent.save(update_fields=["status"])
        return sent

    def item(self) -> ReviewItem:
        return sampling.open_batch(team=self.team, by=SYSTEM).items.select_related("batch").first()

    def disagreement(self) -> ReviewItem:
        """An item on which two people differ."""
        item = self.item()
        ReviewItem.objects.of(self.team).filter(pk=item.pk).update(state="conflicted")
        return item

    def verdict(self, item: ReviewItem) -> Any:
        return verdicts.decide(**self.who, reviewer=self.alice, item=item, decision="demote", version=item.version)


@pytest.fixture
def cast(team, alice, agent, api) -> Cast:
    memory = factories.memory(agent)
    trace, _ = factories.trace(agent)
    found = api.post("/api/v1/recall", {"query": "run the migrations before the tests", "min_relevance": 0}).json()
    with team_transaction(team):
        token = ApiToken.objects.of(team).get()
        recall = Recall.objects.of(team).get(pk=found["recall_id"])
    return Cast(team, alice, agent, token, memory, trace, recall)


def revised(c: Cast) -> Memory:
    return memories.revise(team=c.team, by=SYSTEM, memory=c.memory, content="Run the migrations, then the tests.")


def feedback(c: Cast) -> list[Any]:
    return memories.give_feedback(**c.who, recall=c.recall, items=[FeedbackItem(str(c.memory.pk), True, True)])


def allow(c: Cast) -> AuthorizationCode:
    connected_clients.allow(
        **c.who, person=c.alice, agent=c.agent, client=Client("https://c.test/mcp", "C", ("https://c.test/back",)),
        redirect_uri="https://c.test/back", challenge="c" * 43, scopes=["memory:read"], allowed=ALL_SCOPES,
    )  # fmt: skip
    return AuthorizationCode.objects.of(c.team).select_related("agent", "person").get()


def own_model(c: Cast) -> Any:
    return model_choice.set_model(**c.who, base_url="https://models.acme.test/v1", model="m", api_key="k")


def swept(c: Cast) -> Any:
    past = timezone.now() - timedelta(days=1)
    Memory.objects.of(c.team).filter(pk=c.other().pk).update(expires_at=past)
    return sweep(**c.who)


def repaired(c: Cast) -> Any:
    Evidence.objects.create(team=c.team, memory=c.memory, quote="left behind", removed_at=timezone.now())
    check = next(check for check in CHECKS if check.is_repaired and check.broken(c.team).exists())
    return repair(**c.who, check=check)


def undone(c: Cast) -> Any:
    item = c.item()
    c.verdict(item)
    return verdicts.undo(**c.who, reviewer=c.alice, item=ReviewItem.objects.select_related("batch").get(pk=item.pk))


def purged(c: Cast) -> int:
    Recall.objects.create(team=c.team, status="no_match", query="what is left of May?")
    return receipt_purging.purge(**c.who, before=timezone.now(), most=10)


def mails_purged(c: Cast) -> int:
    ReviewMail.objects.create(team=c.team, user=c.alice, kind="open", about="2026-W01", status="sent")
    return mail_purging.purge(**c.who, before=timezone.now(), most=10)


# MADE leave no `before`, CHANGED leave both and they differ, GONE leave no `after`.
MADE: dict[str, Callable[[Cast], Any]] = {
    "hindsight_site.accounts.people.add": lambda c: people.add(
        **c.who, person=User.objects.create_user("new@acme.test"), role="reviewer"
    ),
    "reflection.model_choice.set_model": lambda c: own_model(c),
    f"{HOOKS}.create_webhook": lambda c: webhooks.create_webhook(
        **c.who, url="https://example.org/", events=["job.finished"]
    ),
    f"{HOOKS}.ping": lambda c: webhooks.ping(**c.who, webhook=c.webhook()),
    f"{HOOKS}.redeliver": lambda c: webhooks.redeliver(**c.who, delivery=c.delivery()),
    "hindsight_site.accounts.actions.create_team": lambda c: accounts.create_team(
        by=person(c.alice), name="Second", owner=c.alice
    ),
    "hindsight_site.accounts.actions.create_agent": lambda c: accounts.create_agent(**c.who, slug="second"),
    "hindsight_site.accounts.actions.create_token": lambda c: accounts.create_token(
        **c.who, name="second", scopes=["review"], allowed=ALL_SCOPES
    ),
    "hindsight_site.accounts.connected_clients.allow": lambda c: allow(c),
    "hindsight_site.accounts.connected_clients.connect": lambda c: connected_clients.connect(**c.who, code=allow(c)),
    "hindsight_site.accounts.people.found_team": lambda c: people.found_team(
        by=person(c.alice), owner=c.alice, name="Third"
    ),
    "hindsight_site.accounts.invitations.invite": lambda c: invitations.invite(
        **c.who, email="nina@new.test", role="viewer", allowed=GIFT, inviter=c.alice
    ),
    "reflection.review.sampling.open_batch": lambda c: sampling.open_batch(**c.who),
    "memories.scopes.add_agent": lambda c: scopes.add_agent(**c.who, slug="second"),
    "memories.scopes.create_shared": lambda c: scopes.create_shared(**c.who, slug="billing", name="Billing"),
    "memories.scopes.grant": lambda c: scopes.grant(
        **c.who, scope=c.scope(), agent=c.agent, can_read=True, can_write=False
    ),
    "memories.actions.remember": lambda c: memories.remember(
        **c.who, scope=c.memory.scope, draft=c.draft, agent=c.agent
    ),
    "memories.actions.remember_many": lambda c: memories.remember_many(
        **c.who, scope=c.memory.scope, drafts=[c.draft], agent=c.agent
    ),
    "memories.actions.promote": lambda c: memories.promote(**c.who, memory=c.memory, scope=scopes.team_scope(c.team)),
    "memories.actions.relate": lambda c: memories.relate(
        **c.who, source=c.memory, target=c.other(), kind=RelationKind.SUPPORTS
    ),
    "memories.actions.give_feedback": feedback,
    "reflection.actions.record_trace": lambda c: reflection.record_trace(
        **c.who, agent=c.agent, draft=TraceDraft(task="Look for the invoice")
    ),
    "reflection.actions.request_reflection": lambda c: reflection.request_reflection(
        **c.who, trace=factories.trace(c.agent, steps=())[0]
    ),
    "reflection.actions.request_consolidation": lambda c: reflection.request_consolidation(
        **c.who, agent=c.agent, scope=c.memory.scope, episodes=[c.memory, c.other()]
    ),
}
MADE |= {
    "hindsight_site.accounts.jobs.actions.request": lambda c: jobs.request(**c.who, kind=JobKind.EXPORT),
    "memories.actions.conflicts.contradict": lambda c: conflicts.contradict(
        **c.who, memory=c.memory, other=c.other(), note="the source says so"
    ),
    "reflection.erasing.asking.request_erasure": lambda c: request_erasure(
        **c.who, target=Target("session", ("s-1",)), confirmation="erase"
    ),
    "reflection.exporting.running.request_export": lambda c: request_export(**c.who),
    "memories.reembedding_job.request_reembedding": lambda c: request_reembedding(**c.who),
    "reflection.consolidation.job.request_consolidation_job": lambda c: request_consolidation_job(**c.who),
    "reflection.importing.running.request_import": lambda c: request_import(**c.who, data=[b'{"results": []}']),
}
CHANGED: dict[str, Callable[[Cast], Any]] = {
    "hindsight_site.accounts.jobs.actions.cancel": lambda c: jobs.cancel(
        **c.who, job=jobs.request(team=c.team, by=SYSTEM, kind=JobKind.EXPORT)
    ),
    "memories.lifecycle.sweep.sweep": lambda c: swept(c),
    "reflection.invariants.repairs.repair": lambda c: repaired(c),
    f"{HOOKS}.change_webhook": lambda c: webhooks.change_webhook(**c.who, webhook=c.webhook(), works=False),
    f"{HOOKS}.rotate_secret": lambda c: webhooks.rotate_secret(**c.who, webhook=c.webhook()),
    "hindsight_site.accounts.actions.change_agent": lambda c: accounts.change_agent(
        **c.who, agent=c.agent, disabled=True
    ),
    "hindsight_site.accounts.actions.rename_token": lambda c: accounts.rename_token(
        **c.who, token=c.token, name="Other"
    ),
    "hindsight_site.accounts.actions.set_token_scopes": lambda c: accounts.set_token_scopes(
        **c.who, token=c.token, scopes=["review"], allowed=ALL_SCOPES
    ),
    "hindsight_site.accounts.actions.set_token_expiry": lambda c: accounts.set_token_expiry(
        **c.who, token=c.token, expires_at=datetime.now(UTC) + timedelta(days=1)
    ),
    "hindsight_site.accounts.actions.rotate_token": lambda c: accounts.rotate_token(
        **c.who, token=c.token, allowed=ALL_SCOPES
    ),
    "hindsight_site.accounts.actions.revoke_token": lambda c: accounts.revoke_token(**c.who, token=c.token),
    "hindsight_site.accounts.people.change_team": lambda c: people.change_team(
        **c.who, name="Acme & Sons", time_zone="Europe/Paris"
    ),
    "hindsight_site.accounts.people.suspend_team": lambda c: people.suspend_team(**c.who),
    "hindsight_site.accounts.people.resume_team": lambda c: people.resume_team(
        by=person(c.alice), team=people.suspend_team(team=c.team, by=SYSTEM)
    ),
    "hindsight_site.accounts.people.change_role": lambda c: people.change_role(
        **c.who, membership=c.member(), role="reviewer", allowed=GIFT
    ),
    "hindsight_site.accounts.people.transfer_ownership": lambda c: people.transfer_ownership(
        **c.who, giver=c.own_membership(), heir=c.member()
    ),
    "hindsight_site.accounts.invitations.resend": lambda c: invitations.resend(
        **c.who, invitation=c.invitation(), allowed=GIFT, sender=c.alice
    ),
    "hindsight_site.accounts.invitations.revoke": lambda c: invitations.revoke(**c.who, invitation=c.invitation()),
    "hindsight_site.accounts.invitations.accept": lambda c: invitations.accept(
        **c.who, invitation=c.invitation(), person=User.objects.create_user("nina@new.test")
    ),
    "hindsight_site.accounts.deletion.request_deletion": lambda c: deletion.request_deletion(
        **c.who, requested_by=c.alice, confirmation=c.team.slug
    ),
    "reflection.review.verdicts.decide": lambda c: c.verdict(c.item()),
    "reflection.review.verdicts.undo": undone,
    "reflection.review.bulk.carry_out": lambda c: bulk.carry_out(
        **c.who, reviewer=c.alice, action=bulk.DEMOTE, items=[c.item()], seen={}
    ),
    "reflection.review.settling.settle": lambda c: settling.settle(
        **c.who, reviewer=c.alice, item=c.disagreement(), decision="approve", version=1
    ),
    "memories.scopes.change": lambda c: scopes.change(**c.who, scope=c.memory.scope, name="Own"),
    "memories.actions.revise": lambda c: memories.revise(**c.who, memory=c.memory, content="Migrate, then test."),
    "memories.actions.rollback": lambda c: memories.rollback(**c.who, memory=revised(c), to=1),
    "memories.actions.approve": lambda c: memories.approve(**c.who, memory=c.memory),
    "memories.actions.demote": lambda c: memories.demote(**c.who, memory=c.memory),
    "memories.actions.archive": lambda c: memories.archive(**c.who, memory=c.memory),
    "memories.actions.restore": lambda c: memories.restore(**c.who, memory=c.other(status=Status.ARCHIVED)),
    "memories.actions.pin": lambda c: memories.pin(**c.who, memory=c.memory),
    "memories.actions.make_lasting": lambda c: memories.make_lasting(**c.who, memory=c.memory),
    "memories.actions.quarantine": lambda c: memories.quarantine(**c.who, memory=c.memory, reason="looks odd"),
    "memories.actions.release": lambda c: memories.release(**c.who, memory=c.other(status=Status.QUARANTINED)),
    "memories.actions.reject": lambda c: memories.reject(**c.who, memory=c.other(status=Status.QUARANTINED)),
    "memories.actions.undo_quarantine_decision": lambda c: memories.undo_quarantine_decision(
        **c.who, memory=memories.release(team=c.team, by=SYSTEM, memory=c.held())
    ),
    "memories.actions.settle_conflict": lambda c: memories.settle_conflict(
        **c.who, conflict=c.conflict(), decision="keep_left"
    ),
    "memories.actions.undo_settlement": lambda c: memories.undo_settlement(**c.who, conflict=c.settled()),
    "memories.actions.split": lambda c: memories.split(**c.who, memory=c.merged()),
    "memories.actions.merging.withdraw_origin": lambda c: withdraw_origin(**c.who, origin=c.origin()),
    "memories.actions.conflicts.notice": lambda c: conflicts.notice(**c.who, memory=c.opposite(), near=c.near()),
    "memories.actions.conflicts.reconsider": lambda c: conflicts.reconsider(**c.who, memory=c.changed_side(), near=[]),
    "memories.actions.put_back": lambda c: memories.put_back(
        **c.who, memory=c.memory, before={**governed(c.memory), "weight": 0.5}
    ),
    "memories.actions.change_policy": lambda c: memories.change_policy(**c.who, changes={"life.capacity": 500}),
    "memories.actions.restore_policy": lambda c: memories.restore_policy(
        team=memories.change_policy(team=c.team, by=SYSTEM, changes={"life.capacity": 500}).team,
        by=c.who["by"],
        number=0,
    ),
    "memories.actions.confirm": lambda c: memories.confirm(
        **c.who, memory=c.memory, draft=Draft(kind=Kind.FACT, content="x", evidence=(c.evidence(),))
    ),
    "memories.actions.drop_evidence": lambda c: memories.drop_evidence(
        **c.who, memory=c.memory, evidence=Evidence.objects.of(c.team)
    ),
    "memories.actions.forget": lambda c: memories.forget(**c.who, memory=c.memory),
    "memories.actions.forget_many": lambda c: memories.forget_many(**c.who, memories=[c.memory, c.other()]),
    "reflection.actions.append_steps": lambda c: reflection.append_steps(
        **c.who, trace=c.opened(), steps=[StepDraft(role="user", content="One more thing.")]
    ),
    "reflection.actions.finish_trace": lambda c: reflection.finish_trace(**c.who, trace=c.opened(), outcome="failed"),
}
CHANGED["hindsight_site.accounts.connected_clients.disconnect"] = lambda c: connected_clients.disconnect(
    **c.who, connected=factories.connected_client(c.agent, c.alice)
)
GONE: dict[str, Callable[[Cast], Any]] = {
    "reflection.model_choice.drop_model": lambda c: (own_model(c), model_choice.drop_model(**c.who)),
    f"{HOOKS}.delete_webhook": lambda c: webhooks.delete_webhook(**c.who, webhook=c.webhook()),
    "hindsight_site.accounts.people.remove": lambda c: people.remove(**c.who, membership=c.member(), allowed=GIFT),
    "hindsight_site.accounts.people.leave": lambda c: people.leave(**c.who, membership=c.member()),
    "memories.scopes.delete": lambda c: scopes.delete(**c.who, scope=c.scope()),
    "memories.receipt_purging.purge": lambda c: purged(c),
    "reflection.review.mail_purging.purge": lambda c: mails_purged(c),
    "reflection.actions.delete_trace": lambda c: reflection.delete_trace(**c.who, trace=c.trace),
}


# What actions are made of: they are given an action's own event to write.
PARTS = {
    "hindsight_site.accounts.audit.record", "hindsight_site.accounts.audit.record_many",
    "memories.actions.changing.change", "memories.actions.remembering.store", "memories.lifecycle.writing.carry_out",
    "reflection.operations.carry_out", "reflection.review.carrying.carry_out", "reflection.review.carrying.put_back",
    "reflection.review.settling.close_opinions",
    "reflection.consolidation.weekly.request_in_scope",
    "memories.actions.quarantining.open_case", "memories.actions.quarantining.close_case",
}  # fmt: skip
# Atomic, and nobody's doing: no team's data changes, or the caller's own event says it.
NOT_OF_A_TEAM = {
    "hindsight_site.accounts.signing_keys.rotate", "hindsight_site.accounts.mail_choices.choose",
    "hindsight_site.accounts.mail_choices.switch_off",
}  # fmt: skip
FACES = {"api", "views", "admin", "tasks", "urls", "migrations", "management", "evaluation"}


def modules_of(app: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(app.__path__, app.__name__ + "."):
        if not FACES & set(found.name.split(".")) and not found.name.endswith("_views"):
            yield importlib.import_module(found.name)


def functions_of(app: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    """The public functions of an app, by the name they are called by (memories.actions.approve)."""
    for module in modules_of(app):
        for name, found in inspect.getmembers(module, inspect.isfunction):
            if not name.startswith("_") and found.__module__ == module.__name__:
                shown = getattr(memories, name, None) is found and "memories.actions"
                yield f"{shown or module.__name__}.{name}", found


FUNCTIONS = dict(pair for app in (hindsight_site.accounts, memories_app, reflection_app) for pair in functions_of(app))


def is_done_by_somebody(found: FunctionType) -> bool:
    """Whether it takes an actor as `by`; a sort key may be called so too."""
    by = inspect.signature(found).parameters.get("by")
    return by is not None and str(by.annotation).endswith("Actor")


WRITERS = [name for name, found in FUNCTIONS.items() if is_done_by_somebody(found)]


def is_atomic(found: FunctionType) -> bool:
    """Whether it is decorated with `transaction.atomic`: it writes, then."""
    inner = inspect.unwrap(found)
    return found.__code__.co_filename.endswith("contextlib.py") and not inspect.isgeneratorfunction(inner)


def test_every_writer_is_walked() -> None:
    assert len(WRITERS) > 50
    assert set(WRITERS) - PARTS == set(MADE) | set(CHANGED) | set(GONE)


def test_nothing_writes_without_saying_who() -> None:
    silent = {name for name, found in FUNCTIONS.items() if is_atomic(found)} - set(WRITERS)
    assert silent <= NOT_OF_A_TEAM


# The verbs of what was made just now, and of what is gone.
MAKING = {
    "agent.created", "batch.opened", "client.allowed", "client.connected", "invitation.created", "job.requested",
    "member.added", "memory.promoted", "memory.related", "memory.remembered", "model.set", "recall.feedback",
    "reflection.requested",
    "scope.created", "scope.granted", "team.created", "token.created", "trace.recorded", "webhook.created",
    "webhook.pinged", "webhook.redelivered",
}  # fmt: skip
ENDING = {
    "member.left", "member.removed", "model.dropped", "recalls.purged", "review.mails_purged", "scope.deleted",
    "team.deleted",
    "trace.deleted", "webhook.deleted",
}  # fmt: skip


def check_states(event: AuditEvent) -> None:
    """Both fingerprints, different ones; the first only left out for what is new, the second for what is gone."""
    assert bool(event.before) != (event.verb in MAKING), event
    assert bool(event.after) != (event.verb in ENDING), event
    assert event.before != event.after, event
    assert all(len(state) in (0, 64) for state in (event.before, event.after))


@pytest.mark.parametrize("name", sorted(set(WRITERS) - PARTS))
def test_a_write_leaves_its_event(cast, name) -> None:
    marker = current_request_id.set(REQUEST)
    try:
        with team_transaction(cast.team):
            done = {**MADE, **CHANGED, **GONE}[name](cast)
            team = done if isinstance(done, Team) else cast.team
            mine = AuditEvent.objects.of(team).filter(actor_id=str(cast.alice.pk), request_id=REQUEST)
            events = list(mine.order_by("at"))
    finally:
        current_request_id.reset(marker)
    assert events, f"{name} left no event"
    for event in events:
        assert (event.actor_kind, event.actor_label) == ("person", str(cast.alice))
        assert event.object_type
        assert event.object_id
        check_states(event)
    # The event of the change itself; what follows from it (a token made by a rotation) has its own.
    expected = (name in CHANGED or name in GONE, name not in GONE)
    assert any((bool(e.before), bool(e.after)) == expected for e in events), events


def test_rules_leave_their_events_too(cast) -> None:
    with team_transaction(cast.team):
        batch = sampling.open_batch(team=cast.team, by=SYSTEM)
        memories.forget(team=cast.team, by=SYSTEM, memory=cast.memory)
        assert turns.void_gone(cast.team, batch) == 1
        assert turns.void_gone(cast.team, batch) == 0
    assert sampling.close_due(batch.closes_at) == 1
    with team_transaction(cast.team):
        job = deletion.request_deletion(team=cast.team, by=SYSTEM, requested_by=cast.alice, confirmation=cast.team.slug)
    deletion.run(cast.team, job.pk)
    with team_transaction(cast.team):
        verbs = ["batch.closed", "review.voided", "team.deleted", "team.deletion_requested"]
        events = AuditEvent.objects.of(cast.team).filter(verb__in=verbs)
        assert sorted(event.verb for event in events) == verbs
        for event in events:
            assert event.actor_kind == "system"
            check_states(event)


def test_a_verdicts_event_tells_the_items_own_states(cast) -> None:
    with team_transaction(cast.team):
        item = cast.item()
        drawn = audit.state_of(item)
        cast.verdict(item)
        decided = audit.state_of(ReviewItem.objects.get(pk=item.pk))
        event = AuditEvent.objects.of(cast.team).get(verb="review.decided")
        assert (event.before, event.after) == (drawn, decided)
        assert ReviewBatch.objects.of(cast.team).count() == 1


def test_no_event_holds_what_a_memory_says(cast) -> None:
    with team_transaction(cast.team):
        for name in ("memories.actions.remember", "memories.actions.revise", "memories.actions.forget"):
            {**MADE, **CHANGED}[name](cast)
        told = [str(event) for event in AuditEvent.objects.of(cast.team).values()]
    assert not any("migrat" in text.lower() or "gigabytes" in text for text in told)


def test_a_fingerprint_tells_states_apart(team, agent) -> None:
    with team_transaction(team):
        token, _ = accounts.create_token(team=team, by=SYSTEM, name="t", scopes=["review"], allowed=ALL_SCOPES)
        stored = ApiToken.objects.of(team).get(pk=token.pk)
        assert audit.state_of(stored) == audit.state_of(ApiToken.objects.of(team).get(pk=token.pk))
        stored.name = "u"
        assert audit.state_of(stored) != audit.state_of(token)
