"""The append-only record of who did what. Written in the transaction of the change itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model

from hindsight_site.accounts import replica
from hindsight_site.accounts.enums import ActorKind
from hindsight_site.accounts.inserting import insert
from hindsight_site.accounts.models import ApiToken, AuditEvent, AuditReason, Team, User
from hindsight_site.middleware import current_request_id


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: a person, a token, or the system itself."""

    kind: str  # enums.ActorKind
    id: str
    label: str

    @property
    def is_person(self) -> bool:
        return self.kind == ActorKind.PERSON


SYSTEM = Actor(ActorKind.SYSTEM, "", "Hindsight")


def person(user: User) -> Actor:
    """The actor for a signed-in person."""
    return Actor(ActorKind.PERSON, str(user.pk), str(user))


def token_actor(token: ApiToken) -> Actor:
    """The actor for a token, labelled with its agent where it has one."""
    label = token.agent.slug if token.agent else token.name
    return Actor(ActorKind.TOKEN, str(token.pk), f"{label} (hs_{token.prefix}_…)")


def system(label: str) -> Actor:
    """The actor for a rule or a schedule, by its name."""
    return Actor(ActorKind.SYSTEM, "", label)


def fingerprint(values: dict[str, Any]) -> str:
    """SHA-256 over the canonical JSON of `values`: tells that something changed, not what it said."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


def state_of(row: Model) -> str:
    """The fingerprint of a row as it stands in memory: taken before a change, it is the event's `before`."""
    fields = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    # Bytes (a digest) print as an address that differs every time.
    return fingerprint({n: bytes(v).hex() if isinstance(v, bytes | memoryview) else v for n, v in fields.items()})


def record(
    *,
    team: Team,
    by: Actor,
    verb: str,
    on: Model,
    before: str = "",
    after: str | None = None,
    detail: dict[str, Any] | None = None,
    reason: str = "",
) -> AuditEvent:
    """Write one event. `detail` holds counts, states and reasons of ours, never memory text.

    `reason` is what somebody wrote, masked by the caller: its words are kept beside the event, which holds their
    fingerprint, so that they can be forgotten (`forget_reasons`). `before` is empty for what was made just now,
    `after` for what is about to go; left out, `after` is the row as it stands.
    """
    replica.note(team.pk)
    event = AuditEvent.objects.create(
        team=team,
        actor_kind=by.kind,
        actor_id=by.id,
        actor_label=by.label,
        verb=verb,
        object_type=on._meta.model_name or "",
        object_id=str(on.pk),
        before=before,
        after=state_of(on) if after is None else after,
        detail={**(detail or {}), **_fingerprint_of(reason)},
        request_id=current_request_id.get(),
    )
    if reason:
        _reason(event, reason).save(force_insert=True)
    return event


def _fingerprint_of(reason: str) -> dict[str, str]:
    return {"reason_fingerprint": fingerprint({"reason": reason})} if reason else {}


def _reason(event: AuditEvent, words: str) -> AuditReason:
    return AuditReason(
        team_id=event.team_id, event_id=event.pk, verb=event.verb, object_type=event.object_type,
        object_id=event.object_id, words=words,
    )  # fmt: skip


def forget_reasons(*, team: Team, object_type: str, ids: Iterable[str]) -> None:
    """Delete what was written as reasons for changes of these rows; the events stay, with the fingerprints."""
    AuditReason.objects.of(team).filter(object_type=object_type, object_id__in=list(ids)).delete()


@dataclass(frozen=True, slots=True)
class Change:
    """One of many changes: its verb, what was changed, the fingerprints around it, and its detail."""

    verb: str
    object_type: str
    object_id: str
    before: str
    after: str
    detail: dict[str, Any] = field(default_factory=dict)
    reason: str = ""  # what somebody wrote, masked by the caller


def record_many(*, team: Team, by: Actor, changes: Iterable[Change]) -> None:
    """Write one event for each change: for a rule that changes hundreds of rows in one statement."""
    replica.note(team.pk)
    request_id = current_request_id.get()
    events, reasons = [], []
    for change in changes:
        event = AuditEvent(
            team=team,
            actor_kind=by.kind,
            actor_id=by.id,
            actor_label=by.label,
            verb=change.verb,
            object_type=change.object_type,
            object_id=change.object_id,
            before=change.before,
            after=change.after,
            detail={**change.detail, **_fingerprint_of(change.reason)},
            request_id=request_id,
        )
        events.append(event)
        if change.reason:
            reasons.append(_reason(event, change.reason))
    insert(events)
    if reasons:
        AuditReason.objects.bulk_create(reasons)
