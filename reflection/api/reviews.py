"""The weekly review over REST: batches, their items, a verdict and its undo.

A verdict is a person's. A token gives one only when it acts for a person (`ApiToken.on_behalf_of`): a client
that they connected with their log-in, or a token of the team's own that they made to act for them. It may
what their role may at that moment, and the verdict counts as theirs; the audit names the token.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from django.db.models import Count, Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.accounts.models import User
from hindsight_site.accounts.permissions import check_whole_team
from hindsight_site.api.fields import ObjectField, TextField
from hindsight_site.api.views import TokenView, page, read_input
from hindsight_site.refusals import Forbidden, NotFound
from memories import queries as memory_queries
from memories import scopes
from memories.api import serializers as forms
from memories.api.memories import masked_change
from memories.enums import Kind
from memories.models import Evidence
from reflection.enums import BatchStatus, Decision, DemoteReason, ItemState, Stratum
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review import queries, turns, verdicts
from reflection.review.canaries import keep_private
from reflection.review.queries import Outcomes
from reflection.review.statistics import Share
from reflection.review.verdicts import MAX_NOTE_CHARS

REVIEW = TokenScope.REVIEW
BATCH_FIELDS = ("week", "status", "opens_at", "closes_at", "seed", "population")
NOBODY = "somebody who left the team"


class ShareOut(serializers.Serializer):
    """A share with its 95 % interval (Wilson), all in 0..1."""

    hits = serializers.IntegerField()
    n = serializers.IntegerField()
    share = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    is_enough = serializers.BooleanField(help_text="False under 20 judgements: it says too little to be a result.")


class BatchOut(serializers.Serializer):
    id = serializers.UUIDField()
    week = serializers.CharField(help_text="The ISO week in the team's time zone, such as 2026-W49.")
    status = serializers.ChoiceField(choices=BatchStatus.choices)
    opens_at = serializers.DateTimeField()
    closes_at = serializers.DateTimeField()
    seed = serializers.CharField(help_text="The draw can be repeated from it.")
    population = ObjectField(help_text="By stratum: how many could be drawn, and how many were.")
    pending = serializers.IntegerField()
    decided = serializers.IntegerField()
    conflicted = serializers.IntegerField(help_text="Two people differ; a third has to settle it.")
    resolved = serializers.IntegerField(help_text="They differed, and it was settled.")
    void = serializers.IntegerField()
    acceptance = ShareOut(allow_null=True, help_text="Of the random sample; null while nothing is judged.")


class JudgedMemoryOut(serializers.Serializer):
    """What a reviewer is shown: no confidence and no author, so that the judgement is blind."""

    id = serializers.UUIDField()
    content = serializers.CharField(help_text="Empty when it was forgotten.")
    kind = serializers.ChoiceField(choices=Kind.choices)
    structure = ObjectField()
    scope = serializers.CharField()
    revision = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class VerdictOut(serializers.Serializer):
    decision = serializers.ChoiceField(choices=Decision.choices)
    reason = serializers.ChoiceField(choices=[*DemoteReason.choices, ("", "None given")])
    note = serializers.CharField()
    reviewer = serializers.CharField()
    at = serializers.DateTimeField()


class ItemOut(serializers.Serializer):
    id = serializers.UUIDField()
    batch = serializers.UUIDField()
    position = serializers.IntegerField()
    state = serializers.ChoiceField(choices=ItemState.choices)
    version = serializers.IntegerField(help_text="Send it with the verdict: a stale one is refused.")
    memory = JudgedMemoryOut()
    evidence = forms.EvidenceOut(many=True)
    stratum = serializers.ChoiceField(
        choices=Stratum.choices, allow_null=True, help_text="Null until it is decided or the week is over."
    )
    inclusion_probability = serializers.FloatField(allow_null=True)
    verdict = VerdictOut(
        allow_null=True,
        help_text="What counts. Null until it is decided or the week is over, and while two people differ.",
    )
    opinions = VerdictOut(many=True, help_text="Of everybody who judged it; empty until it is decided.")


class ItemsIn(serializers.Serializer):
    state = serializers.ChoiceField(choices=ItemState.choices, required=False)


class VerdictIn(serializers.Serializer):
    decision = serializers.ChoiceField(choices=Decision.choices)
    reason = serializers.ChoiceField(
        choices=DemoteReason.choices, required=False, allow_blank=True, default="", help_text="With a demotion."
    )
    note = TextField(required=False, allow_blank=True, default="", max_length=MAX_NOTE_CHARS)
    content = TextField(required=False, allow_null=True, default=None, help_text="The new text, with an edit.")
    version = serializers.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, help_text="Of the item as it was read; left out: as it is."
    )
    memory_revision = serializers.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, help_text="Of the memory as it was read; checked when given."
    )


def check_reach(caller: Caller) -> None:
    """A token of an agent's own does not judge the team's sample; one that acts for a person does."""
    if caller.token.on_behalf_of_id is None:
        check_whole_team(caller.agent, "take part in the team's review")


def reviewer_of(caller: Caller) -> User:
    """Return the person the token acts for. Raises `Forbidden` when there is none."""
    person = caller.token.on_behalf_of
    if person is None:
        raise Forbidden(
            "A verdict needs a person, and this token acts for none. Use a client that a reviewer has connected "
            "with their log-in, or a team token made with “Acts for me” on the page of team tokens.",
            code="person_needed",
        )
    return person


def seen_items(caller: Caller) -> QuerySet[ReviewItem]:
    """The items the caller may read: of memories that its agent may see, or all of the team's."""
    items = ReviewItem.objects.of(caller.team).select_related("batch", "memory__scope")
    if caller.agent is None:
        return items
    return items.filter(memory__in=memory_queries.visible(caller.team, caller.agent).values("pk"))


def find_item(caller: Caller, item_id: uuid.UUID) -> ReviewItem:
    """Return an item the caller may judge, or raise `NotFound`."""
    check_reach(caller)
    item = seen_items(caller).filter(pk=item_id).first()
    if item is None:
        raise NotFound("There is no such review item.", code="item_not_found")
    scopes.writable(caller.team, caller.agent, item.memory.scope.slug)
    return item


def share_body(share: Share | None) -> dict[str, Any] | None:
    """A share as JSON values."""
    return ShareOut(share).data if share else None


def batch_bodies(batches: Sequence[ReviewBatch]) -> list[dict[str, Any]]:
    """Batches with how far they are and the rate of their random sample."""
    outcomes = queries.outcomes_by_stratum(batches[0].team, batches) if batches else {}
    return [
        {
            "id": str(batch.pk),
            **{name: getattr(batch, name) for name in BATCH_FIELDS},
            **{state: getattr(batch, f"{state}_count") for state in ItemState.values},
            "acceptance": share_body(outcomes.get((batch.pk, Stratum.RANDOM), Outcomes()).rate),
        }
        for batch in batches
    ]


def item_bodies(caller: Caller, items: Sequence[ReviewItem]) -> list[dict[str, Any]]:
    """Items as a reviewer may see them: blind until they are decided or their week is over."""
    standing = queries.standing_verdicts(caller.team, items)
    quotes: dict[uuid.UUID, list[Evidence]] = {}
    for quote in Evidence.objects.of(caller.team).filter(memory__in=[item.memory_id for item in items]).order_by("id"):
        quotes.setdefault(quote.memory_id, []).append(quote)
    person = caller.token.on_behalf_of_id
    return [_item_body(item, standing.get(item.pk, []), quotes.get(item.memory_id, []), person) for item in items]


def _item_body(
    item: ReviewItem, standing: Sequence[Verdict], quotes: list[Evidence], person_id: int | None
) -> dict[str, Any]:
    is_own = any(one.reviewer_id == person_id for one in standing)
    is_private = keep_private(item, is_own=person_id is not None and is_own, manages=False)
    is_blind = is_private or (item.state == ItemState.PENDING and verdicts.is_open(item.batch))
    verdict = next(iter(standing), None) if item.state != ItemState.CONFLICTED else None
    memory = item.memory
    names = ("content", "kind", "structure", "revision", "created_at")
    return {
        "id": str(item.pk),
        "batch": str(item.batch_id),
        "position": item.position,
        "state": item.state,
        "version": item.version,
        "memory": {
            "id": str(memory.pk), "scope": memory.scope.slug, **{name: getattr(memory, name) for name in names}
        },
        "evidence": forms.EvidenceOut(quotes, many=True).data,
        "stratum": None if is_blind else item.stratum,
        "inclusion_probability": None if is_blind else item.inclusion_probability,
        "verdict": None if is_blind or verdict is None else _verdict_body(verdict),
        "opinions": [] if is_blind else [_verdict_body(one) for one in standing if not one.settles],
    }  # fmt: skip


def _verdict_body(verdict: Verdict) -> dict[str, Any]:
    return {
        "decision": verdict.decision,
        "reason": verdict.reason,
        "note": verdict.note,
        "reviewer": str(verdict.reviewer or NOBODY),
        "at": verdict.created_at,
    }


class BatchesView(TokenView):
    token_scopes = {"GET": REVIEW}

    @extend_schema(operation_id="reviews_batches_list", responses=BatchOut(many=True))
    def get(self, request: Request) -> Response:
        """The weekly samples, newest first, with how far each is and its acceptance rate."""
        caller = self.caller(request)
        check_reach(caller)
        counts = {f"{state}_count": Count("items", filter=Q(items__state=state)) for state in ItemState.values}
        rows = ReviewBatch.objects.of(caller.team).select_related("team").annotate(**counts)
        return page(request, rows, batch_bodies, ordering=("-opens_at", "-id"))


class ItemsView(TokenView):
    token_scopes = {"GET": REVIEW}

    @extend_schema(operation_id="reviews_items_list", parameters=[ItemsIn], responses=ItemOut(many=True))
    def get(self, request: Request, batch_id: uuid.UUID) -> Response:
        """The memories of one batch, in the order they were drawn; what others decided stays hidden until then."""
        caller = self.caller(request)
        check_reach(caller)
        batch = ReviewBatch.objects.of(caller.team).filter(pk=batch_id).first()
        if batch is None:
            raise NotFound("There is no such batch.", code="batch_not_found")
        turns.void_gone(caller.team, batch)
        rows = seen_items(caller).filter(batch=batch)
        wanted = read_input(ItemsIn, request.query_params.dict())
        if "state" in wanted:
            rows = rows.filter(state=wanted["state"])
        return page(request, rows, lambda found: item_bodies(caller, found), ordering=("position", "id"))


class VerdictView(TokenView):
    token_scopes = {"POST": REVIEW}

    @extend_schema(operation_id="reviews_verdict", request=VerdictIn, responses=ItemOut)
    def post(self, request: Request, item_id: uuid.UUID) -> Response:
        """Judge a sampled memory, and carry it out: approve, demote, edit, hide as sensitive, or leave it.

        The same decision sent twice is one verdict. 409 says who was faster, or that the week is over.
        """
        caller = self.caller(request)
        item = find_item(caller, item_id)
        wanted = masked_change(read_input(VerdictIn, request.data))
        verdicts.decide(
            team=caller.team,
            by=caller.actor,
            reviewer=reviewer_of(caller),
            item=item,
            decision=wanted["decision"],
            reason=wanted["reason"],
            note=wanted["note"],
            content=wanted["content"],
            version=wanted.get("version", item.version),
            revision=wanted.get("memory_revision"),
        )
        return Response(item_bodies(caller, [find_again(caller, item_id)])[0])


class UndoView(TokenView):
    token_scopes = {"POST": REVIEW}

    @extend_schema(operation_id="reviews_undo", request=None, responses=ItemOut)
    def post(self, request: Request, item_id: uuid.UUID) -> Response:
        """Take one's own verdict back, while its week is open: the memory as it was, the item to be judged again."""
        caller = self.caller(request)
        item = find_item(caller, item_id)
        verdicts.undo(team=caller.team, by=caller.actor, reviewer=reviewer_of(caller), item=item)
        return Response(item_bodies(caller, [find_again(caller, item_id)])[0])


def find_again(caller: Caller, item_id: uuid.UUID) -> ReviewItem:
    """The item after a verdict, which may have taken its memory out of the caller's sight."""
    return ReviewItem.objects.of(caller.team).select_related("batch", "memory__scope").get(pk=item_id)
