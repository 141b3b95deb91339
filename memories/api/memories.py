"""Memories over REST: write, list, read, change, judge."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.accounts.permissions import check_whole_team
from hindsight_site.api.callers import acting_agent
from hindsight_site.api.fields import AwareDateTimeField
from hindsight_site.api.idempotency import idempotent
from hindsight_site.api.views import TokenView, expected_revision, page, read_input
from hindsight_site.problems import flatten, summary
from hindsight_site.refusals import Refused
from memories import actions, queries, scopes
from memories.api import examples
from memories.api import serializers as forms
from memories.api.drafts import draft_from, masked_in
from memories.enums import Kind, Status, Tier, Trust
from memories.lift import lifts
from memories.models import Memory
from memories.safety.masking import MaskState, mask_value

READ, WRITE, ADMIN = TokenScope.MEMORY_READ, TokenScope.MEMORY_WRITE, TokenScope.ADMIN
ORDERS = {
    "newest": ("-created_at", "-id"),
    "oldest": ("created_at", "id"),
    "changed": ("-updated_at", "-id"),
    "confidence": ("-confidence", "-id"),
}


class FiltersIn(serializers.Serializer):
    scope = serializers.CharField(max_length=80, required=False, default="")
    agent = serializers.CharField(max_length=60, required=False, default="")
    tier = serializers.ChoiceField(choices=Tier.choices, required=False, default="")
    kind = serializers.ChoiceField(choices=Kind.choices, required=False, default="")
    status = serializers.ChoiceField(choices=Status.choices, required=False, default="")
    tag = serializers.CharField(max_length=60, required=False, default="")
    trust = serializers.ChoiceField(choices=Trust.choices, required=False, default="")
    text = serializers.CharField(max_length=200, required=False, default="")
    created_after = AwareDateTimeField(required=False, default=None)
    created_before = AwareDateTimeField(required=False, default=None)
    needs_review = serializers.BooleanField(required=False, default=None, allow_null=True)
    order = serializers.ChoiceField(choices=sorted(ORDERS), required=False, default="newest")


def render(memories: list[Memory], caller: Caller, serializer: type = forms.MemoryOut) -> list[dict[str, Any]]:
    """Serialize memories, each with whether it is contested, and its lift."""
    ids = [memory.pk for memory in memories]
    context = {"contested": queries.contested(caller.team, ids), "lifts": lifts(caller.team, ids)}
    return serializer(memories, many=True, context=context).data


class MemoriesView(TokenView):
    token_scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(
        operation_id="memories_list",
        parameters=[FiltersIn],
        responses=forms.MemoryOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """The memories this token may see, newest first."""
        caller = self.caller(request)
        wanted = read_input(FiltersIn, request.query_params.dict())
        ordering = ORDERS[wanted.pop("order")]
        rows = queries.narrow(queries.visible(caller.team, caller.agent), queries.Filters(**wanted))
        return page(request, rows, lambda found: render(found, caller), ordering)

    @extend_schema(
        operation_id="memories_write",
        request=forms.MemoryIn,
        responses={201: forms.MemoryWritten, 200: forms.MemoryWritten},
        examples=[examples.REMEMBER],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Remember one thing: 201, or 200 with `merged_into` when it is known already."""
        caller = self.caller(request)
        wanted = read_input(forms.MemoryIn, request.data)
        done = write(caller, wanted)
        body = render([done.memory], caller)[0]
        body["merged_into"] = str(done.memory.pk) if done.merged else None
        body["masked"] = masked_in(wanted["content"])
        return Response(body, status=200 if done.merged else 201)


def write(caller: Caller, wanted: dict[str, Any]) -> actions.Remembered:
    """Write one memory for the agent that the call speaks for."""
    agent = acting_agent(caller, wanted.pop("agent"))
    scope = scopes.writable(caller.team, agent, wanted.pop("scope"))
    return actions.remember(team=caller.team, by=caller.actor, scope=scope, agent=agent, draft=draft_from(wanted))


class BulkView(TokenView):
    token_scopes = {"POST": WRITE}

    @extend_schema(operation_id="memories_bulk", request=forms.BulkIn, responses=forms.BulkOut)
    @idempotent
    def post(self, request: Request) -> Response:
        """Remember up to 500 things; each is written or refused for itself, in the same order."""
        caller = self.caller(request)
        wanted = read_input(forms.BulkIn, request.data)["memories"]
        return Response({"results": write_bulk(caller, wanted)})


def write_bulk(caller: Caller, wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write what is valid, one batch per scope, and say for each item what became of it."""
    results: list[dict[str, Any]] = [{} for _ in wanted]
    batches: dict[tuple[Any, Any], list[tuple[int, actions.Draft]]] = {}
    for place, item in enumerate(wanted):
        try:
            checked = read_input(forms.MemoryIn, item)
            agent = acting_agent(caller, checked.pop("agent"))
            scope = scopes.writable(caller.team, agent, checked.pop("scope"))
            draft = draft_from(checked)
            actions.check_draft(draft)
            batches.setdefault((scope, agent), []).append((place, draft))
        except (Refused, serializers.ValidationError) as error:
            results[place] = {"status": "refused", "error": message_of(error)}
    for (scope, agent), batch in batches.items():
        drafts = [draft for _, draft in batch]
        done = actions.remember_many(team=caller.team, by=caller.actor, scope=scope, drafts=drafts, agent=agent)
        for (place, _), one in zip(batch, done, strict=True):
            results[place] = bulk_result(one)
    return results


def bulk_result(done: actions.Remembered) -> dict[str, Any]:
    ident = str(done.memory.pk)
    return (
        {"status": "merged", "id": ident, "merged_into": ident} if done.merged else {"status": "created", "id": ident}
    )


def message_of(error: Exception) -> str:
    """One line that says what is wrong with one item."""
    if isinstance(error, serializers.ValidationError):
        return summary(tuple(flatten(error.get_full_details())))
    return str(error)


class MemoryView(TokenView):
    token_scopes = {"GET": READ, "PATCH": WRITE, "DELETE": ADMIN}

    @extend_schema(operation_id="memories_read", responses=forms.MemoryOut)
    def get(self, request: Request, memory_id: uuid.UUID) -> Response:
        """One memory, whole."""
        caller = self.caller(request)
        return one(queries.get(caller.team, caller.agent, memory_id), caller)

    @extend_schema(operation_id="memories_change", request=forms.MemoryChange, responses=forms.MemoryOut)
    def patch(self, request: Request, memory_id: uuid.UUID) -> Response:
        """Change text, structure or tags. Send `If-Match: "<revision>"` to be safe from lost updates."""
        caller = self.caller(request)
        memory = writable_memory(caller, memory_id)
        wanted = read_input(forms.MemoryChange, request.data)
        expected = expected_revision(request, wanted)
        wanted.pop("revision", None)
        memory = actions.revise(team=caller.team, by=caller.actor, memory=memory, expected_revision=expected, **wanted)
        return one(memory, caller)

    @extend_schema(operation_id="memories_delete", responses={204: None})
    def delete(self, request: Request, memory_id: uuid.UUID) -> Response:
        """Forget a memory for good: text, vectors, evidence and history go, a tombstone stays."""
        caller = self.caller(request)
        actions.forget(team=caller.team, by=caller.actor, memory=deletable_memory(caller, memory_id))
        return Response(status=204)


def masked_change(wanted: dict[str, Any]) -> dict[str, Any]:
    """What a payload changes is masked like what it writes."""
    mask = MaskState()
    return {name: mask_value(value, mask) for name, value in wanted.items()}


def one(memory: Memory, caller: Caller) -> Response:
    """Answer with one memory and its revision as ETag."""
    return Response(render([memory], caller)[0], headers={"ETag": f'"{memory.revision}"'})


def writable_memory(caller: Caller, memory_id: uuid.UUID) -> Memory:
    """Return a memory in a scope that the caller may write to."""
    memory = queries.get(caller.team, caller.agent, memory_id)
    scopes.writable(caller.team, caller.agent, memory.scope.slug)
    return memory


def deletable_memory(caller: Caller, memory_id: uuid.UUID) -> Memory:
    """Return a memory that the caller may delete for good: an agent's own token what is that agent's own."""
    memory = writable_memory(caller, memory_id)
    if caller.agent is not None and caller.agent.pk not in {memory.agent_id, memory.scope.agent_id}:
        check_whole_team(caller.agent, "delete what others have written")
    return memory
