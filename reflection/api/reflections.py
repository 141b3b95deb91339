"""Reflections over REST: ask for one, and watch it end."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils.decorators import method_decorator
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.api.idempotency import idempotent
from hindsight_site.api.views import TokenView, page, read_input
from hindsight_site.api.waiting import WAIT, until_ended, wait_seconds
from hindsight_site.refusals import NotFound
from memories import queries, scopes
from memories.enums import Status
from memories.models import Scope
from reflection import actions
from reflection.api import serializers as forms
from reflection.api.traces import find_trace
from reflection.drafts import bad
from reflection.enums import REFLECTION_OPEN
from reflection.models import Reflection

LOOK_EVERY_SECONDS = 0.1


def own_reflections(caller: Caller) -> Any:
    """The reflections a caller may see: an agent its own, a team token all of the team's."""
    rows = Reflection.objects.of(caller.team).select_related("agent", "trace", "scope")
    rows = rows.prefetch_related("results__memory")
    return rows if caller.agent is None else rows.filter(agent=caller.agent)


def look_across(caller: Caller, ids: Sequence[uuid.UUID], instruction: str) -> Reflection:
    """Ask for a look across memories that the caller may see. Raises `NotFound`, `Invalid` or `Forbidden`."""
    episodes = list(queries.visible(caller.team, caller.agent).filter(pk__in=ids).exclude(status=Status.FORGOTTEN))
    if missing := set(ids) - {memory.pk for memory in episodes}:
        raise NotFound(f"There is no memory {min(missing)}.", code="memory_not_found")
    return actions.request_consolidation(
        team=caller.team,
        by=caller.actor,
        agent=caller.agent,
        scope=_common_scope(caller, {memory.scope.slug for memory in episodes}),
        episodes=episodes,
        instruction=instruction,
        token=caller.token,
    )


def _common_scope(caller: Caller, slugs: set[str]) -> Scope:
    """Where the conclusions go: the scope that all come from, or the agent's own, which no other agent reads."""
    if len(slugs) == 1:
        return scopes.writable(caller.team, caller.agent, *slugs)
    if caller.agent is None:
        raise bad("episodes", "must lie in one scope when the token is bound to no agent.")
    return scopes.private_of(caller.team, caller.agent)


class ReflectionsView(TokenView):
    token_scopes = {"GET": TokenScope.MEMORY_READ, "POST": TokenScope.REFLECT}

    @extend_schema(operation_id="reflections_list", responses=forms.ReflectionOut(many=True))
    def get(self, request: Request) -> Response:
        """Reflections, newest first."""
        rows = own_reflections(self.caller(request))
        return page(request, rows, lambda found: forms.ReflectionOut(found, many=True).data)

    @extend_schema(
        operation_id="reflections_request", request=forms.ReflectionIn, responses={202: forms.ReflectionShort}
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Look back at an ended trace, or across chosen memories. One that is under way already is returned."""
        caller, wanted = self.caller(request), read_input(forms.ReflectionIn, request.data)
        if ("trace" in wanted) == ("episodes" in wanted):
            raise bad("trace", "or episodes must be given, and not both: one trace, or memories to look across.")
        if "trace" in wanted:
            trace = find_trace(caller, wanted["trace"])
            reflection = actions.request_reflection(team=caller.team, by=caller.actor, trace=trace, token=caller.token)
        else:
            reflection = look_across(caller, wanted["episodes"], wanted["instruction"])
        location = {"Location": f"/api/v1/reflections/{reflection.pk}"}
        return Response(forms.ReflectionShort(reflection).data, status=202, headers=location)


@method_decorator(transaction.non_atomic_requests, name="dispatch")
class ReflectionView(TokenView):
    """Waits outside any transaction, so that nothing is held while nothing happens."""

    token_scopes = {"GET": TokenScope.MEMORY_READ}

    @extend_schema(
        operation_id="reflections_read",
        parameters=[WAIT],
        responses=forms.ReflectionOut,
    )
    def get(self, request: Request, reflection_id: uuid.UUID) -> Response:
        """One reflection: its state, what it wrote, what it refused and why, what it cost."""
        return Response(awaited(self.caller(request), reflection_id, wait_seconds(request)))


def awaited(caller: Caller, reflection_id: uuid.UUID, seconds: float) -> dict[str, Any]:
    """Return a reflection when it has ended, or as it stands after `seconds`. Call outside a transaction."""
    return until_ended(
        caller.team,
        lambda: _find(caller, reflection_id),
        lambda reflection: reflection.status in REFLECTION_OPEN,
        lambda reflection: forms.ReflectionOut(reflection).data,
        seconds=seconds,
        every=LOOK_EVERY_SECONDS,
    )


def _find(caller: Caller, reflection_id: uuid.UUID) -> Reflection:
    reflection = own_reflections(caller).filter(pk=reflection_id).first()
    if reflection is None:
        raise NotFound("There is no such reflection.", code="reflection_not_found")
    return reflection
