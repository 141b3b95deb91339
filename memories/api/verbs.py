"""What can be done to one memory, and what hangs on it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.api.views import TokenView, expected_revision, page, read_input
from memories import actions, queries
from memories.api import serializers as forms
from memories.api.memories import deletable_memory, masked_change, one, writable_memory
from memories.models import Evidence, Memory, RecallHit, Relation, Revision

WRITE, REVIEW, ADMIN = TokenScope.MEMORY_WRITE, TokenScope.REVIEW, TokenScope.ADMIN


def verb_view(
    name: str,
    action: Callable[..., Memory],
    scope: str,
    form: type[Serializer],
    does: str,
    find: Callable[[Caller, uuid.UUID], Memory] = writable_memory,
) -> type[TokenView]:
    """Return the view of `POST memories/{id}/<name>`, which calls `action` with the fields of `form`.

    `find` returns the memory, or says why it is not the caller's to act on.
    """

    class VerbView(TokenView):
        token_scopes = {"POST": scope}

        @extend_schema(operation_id=f"memories_{name}", request=form, responses=forms.MemoryOut)
        def post(self, request: Request, memory_id: uuid.UUID) -> Response:
            caller = self.caller(request)
            memory = find(caller, memory_id)
            wanted = masked_change(read_input(form, request.data or {}))
            if "revision" in form().fields:
                wanted["expected_revision"] = expected_revision(request, wanted)
                wanted.pop("revision", None)
            return one(action(team=caller.team, by=caller.actor, memory=memory, **wanted), caller)

    VerbView.post.__doc__ = does  # which the API reference shows
    return VerbView


Approve = verb_view(
    "approve",
    actions.approve,
    REVIEW,
    forms.Verb,
    "True and worth recalling: raises confidence, clears flags.",
)
# hindsight_forget takes memory:write for the same: docs/adr/0013.
Demote = verb_view(
    "demote",
    actions.demote,
    REVIEW,
    forms.Verb,
    "Never recall it again; it stays in history and can be restored.",
)
Archive = verb_view("archive", actions.archive, WRITE, forms.Verb, "Put aside: recalled on request only.")
Restore = verb_view("restore", actions.restore, REVIEW, forms.Verb, "Bring back what was archived or demoted.")
Pin = verb_view("pin", actions.pin, WRITE, forms.PinIn, "Exempt from fading and eviction, or stop doing so.")
Forget = verb_view(
    "forget", actions.forget, ADMIN, forms.ForgetIn, "Delete for good; a tombstone stays.", find=deletable_memory
)
Rollback = verb_view("rollback", actions.rollback, WRITE, forms.RollbackIn, "Say again what an earlier revision said.")


class RelatedView(TokenView):
    """A list that hangs on one memory."""

    token_scopes = {"GET": TokenScope.MEMORY_READ}

    def memory(self, request: Request, memory_id: uuid.UUID) -> Memory:
        caller = self.caller(request)
        return queries.get(caller.team, caller.agent, memory_id)


class EvidenceView(RelatedView):
    @extend_schema(operation_id="memories_evidence", responses=forms.EvidenceOut(many=True))
    def get(self, request: Request, memory_id: uuid.UUID) -> Response:
        """The quotes it rests on."""
        memory = self.memory(request, memory_id)
        rows = Evidence.objects.of(memory.team).filter(memory=memory)
        return page(request, rows, lambda found: forms.EvidenceOut(found, many=True).data)


class RevisionsView(RelatedView):
    @extend_schema(operation_id="memories_revisions", responses=forms.RevisionOut(many=True))
    def get(self, request: Request, memory_id: uuid.UUID) -> Response:
        """What it said before, newest first."""
        memory = self.memory(request, memory_id)
        rows = Revision.objects.of(memory.team).filter(memory=memory)
        return page(request, rows, lambda found: forms.RevisionOut(found, many=True).data, ordering=("-number", "-id"))


class RelationsView(RelatedView):
    @extend_schema(operation_id="memories_relations", responses=forms.RelationOut(many=True))
    def get(self, request: Request, memory_id: uuid.UUID) -> Response:
        """Its edges to other memories that this token may see."""
        memory, caller = self.memory(request, memory_id), self.caller(request)
        seen = queries.visible(caller.team, caller.agent).values("pk")
        out = Relation.objects.of(memory.team).filter(source=memory, target__in=seen)
        into = Relation.objects.of(memory.team).filter(target=memory, source__in=seen)
        return page(request, out | into, lambda found: forms.RelationOut(found, many=True).data)


class RecallsView(RelatedView):
    @extend_schema(operation_id="memories_recalls", responses=forms.RecallOfMemory(many=True))
    def get(self, request: Request, memory_id: uuid.UUID) -> Response:
        """Which agent was handed it when. An agent sees its own recalls."""
        memory, caller = self.memory(request, memory_id), self.caller(request)
        rows = RecallHit.objects.of(memory.team).filter(memory=memory).select_related("recall__agent")
        if caller.agent is not None:
            rows = rows.filter(recall__agent=caller.agent)
        return page(request, rows, rendered_recalls, ordering=("-id", "-rank"))


def rendered_recalls(hits: list[RecallHit]) -> list[dict[str, Any]]:
    return list(forms.RecallOfMemory(hits, many=True).data)
