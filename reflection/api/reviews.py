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
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.accounts.models import User
from hindsight_site.accounts.permissions import check_whole_team
from hindsight_site.api.views import TokenView, page, read_input
from hindsight_site.refusals import Forbidden, NotFound
from memories import queries as memory_queries
from memories import scopes
from memories.api import serializers as forms
from memories.api.memories import masked_change
from memories.models import Evidence
from reflection.api.review_forms import BatchOut, ItemOut, ItemsIn, SettleIn, ShareOut, VerdictIn
from reflection.enums import ItemState, Stratum
from reflection.models import ReviewBatch, ReviewItem, Verdict
from reflection.review import queries, settling, turns, verdicts
from reflection.review.canaries import keep_private
from reflection.review.queries import Outcomes
from reflection.review.statistics import Share

REVIEW = TokenScope.REVIEW
BATCH_FIELDS = ("week", "status", "opens_at", "closes_at", "seed", "population")
NOBODY = "somebody who left the team"


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
        verdicts.decide(**_judgement(caller, item, read_input(VerdictIn, request.data)))
        return Response(item_bodies(caller, [find_again(caller, item_id)])[0])


class SettleView(TokenView):
    token_scopes = {"POST": REVIEW}

    @extend_schema(operation_id="reviews_settle", request=SettleIn, responses=ItemOut)
    def post(self, request: Request, item_id: uuid.UUID) -> Response:
        """End a disagreement: what is decided here counts and is carried out, both opinions are kept beside it.

        A third reviewer may, or somebody who manages the team; also after the week is over. `undo` takes it back
        while the week lasts. 409 says that it is settled, or that nobody differs.
        """
        caller = self.caller(request)
        item = find_item(caller, item_id)
        settling.settle(**_judgement(caller, item, read_input(SettleIn, request.data)))
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


def _judgement(caller: Caller, item: ReviewItem, sent: dict[str, Any]) -> dict[str, Any]:
    """What was sent, as the actions take it."""
    wanted = masked_change(sent)
    return {
        "team": caller.team,
        "by": caller.actor,
        "reviewer": reviewer_of(caller),
        "item": item,
        "decision": wanted["decision"],
        "reason": wanted["reason"],
        "note": wanted["note"],
        "content": wanted["content"],
        "version": wanted.get("version", item.version),
        "revision": wanted.get("memory_revision"),
    }


def find_again(caller: Caller, item_id: uuid.UUID) -> ReviewItem:
    """The item after a verdict, which may have taken its memory out of the caller's sight."""
    return ReviewItem.objects.of(caller.team).select_related("batch", "memory__scope").get(pk=item_id)
