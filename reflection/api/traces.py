"""Traces over REST: whole, or begun, extended and ended."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.api.callers import need_agent
from hindsight_site.api.idempotency import idempotent
from hindsight_site.api.views import TokenView, page, read_input
from hindsight_site.refusals import NotFound
from reflection import actions
from reflection.api import examples
from reflection.api import serializers as forms
from reflection.api.steps import read_steps
from reflection.drafts import TraceDraft
from reflection.enums import TraceStatus
from reflection.models import Reflection, Trace

READ, TRACE, ADMIN = TokenScope.MEMORY_READ, TokenScope.TRACE_WRITE, TokenScope.ADMIN
KNOWN = frozenset({*forms.TraceIn().fields, "steps", "extra"})


def own_traces(caller: Caller) -> QuerySet[Trace]:
    """The traces a caller may see: an agent its own, a team token all of the team's."""
    traces = Trace.objects.of(caller.team).select_related("agent")
    return traces if caller.agent is None else traces.filter(agent=caller.agent)


def find_trace(caller: Caller, trace_id: uuid.UUID) -> Trace:
    """Return one trace that the caller may see, or raise `NotFound`."""
    trace = own_traces(caller).filter(pk=trace_id).first()
    if trace is None:
        raise NotFound("There is no such trace.", code="trace_not_found")
    return trace


class TraceFilters(serializers.Serializer):
    agent = serializers.CharField(max_length=60, required=False, default="")
    status = serializers.ChoiceField(choices=TraceStatus.choices, required=False, default="")
    session_id = serializers.CharField(max_length=120, required=False, default="")


class TracesView(TokenView):
    token_scopes = {"GET": READ, "POST": TRACE}

    @extend_schema(
        operation_id="traces_list",
        parameters=[TraceFilters],
        responses=forms.TraceOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Traces, newest first, without their steps."""
        wanted = read_input(TraceFilters, request.query_params.dict())
        exact = {
            "agent__slug": wanted["agent"],
            "status": wanted["status"],
            "session_id": wanted["session_id"],
        }
        rows = own_traces(self.caller(request)).filter(**{name: value for name, value in exact.items() if value})
        return page(request, rows, lambda found: forms.TraceOut(found, many=True).data)

    @extend_schema(
        operation_id="traces_record",
        request=forms.TraceDocumented,
        responses={201: forms.TraceWritten},
        examples=[examples.WHOLE, examples.BEGUN, examples.RECORDED],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Record a task. With an outcome it has ended, and a reflection is queued or skipped, with the reason."""
        trace, reflection = record(self.caller(request), request.data)
        return Response(written(trace, reflection), status=201, headers={"Location": f"/api/v1/traces/{trace.pk}"})


def record(caller: Caller, body: dict[str, Any]) -> tuple[Trace, Reflection | None]:
    """Record the task in a payload for the agent that the call speaks for."""
    wanted = read_input(forms.TraceIn, body)
    agent = need_agent(caller, wanted.pop("agent"))
    shape = wanted.pop("format")
    return actions.record_trace(
        team=caller.team, by=caller.actor, agent=agent, draft=_draft(wanted, body, shape), token=caller.token
    )


def _draft(wanted: dict[str, Any], body: dict[str, Any], shape: str) -> TraceDraft:
    extra = {key: value for key, value in body.items() if key not in KNOWN}
    return TraceDraft(
        **{**wanted, "outcome": wanted["outcome"] or "", "result": wanted["result"] or ""},
        steps=read_steps(body.get("steps", []), shape),
        extra=extra,
    )


def written(trace: Trace, reflection: Reflection | None) -> dict[str, Any]:
    """The answer to a recorded or finished trace."""
    short = forms.ReflectionShort(reflection).data if reflection else None
    return {"id": str(trace.pk), "status": trace.status, "reflection": short}


class TraceView(TokenView):
    token_scopes = {"GET": READ, "DELETE": ADMIN}

    @extend_schema(operation_id="traces_read", responses=forms.TraceWhole)
    def get(self, request: Request, trace_id: uuid.UUID) -> Response:
        """One trace, with its steps in order and its reflections."""
        return Response(whole(find_trace(self.caller(request), trace_id)))

    @extend_schema(operation_id="traces_delete", responses={204: None})
    def delete(self, request: Request, trace_id: uuid.UUID) -> Response:
        """Delete a trace. Memories stay; their quotes from it are emptied."""
        caller = self.caller(request)
        actions.delete_trace(team=caller.team, by=caller.actor, trace=find_trace(caller, trace_id))
        return Response(status=204)


def whole(trace: Trace) -> dict[str, Any]:
    """A trace with its steps and reflections, as JSON values."""
    body = dict(forms.TraceOut(trace).data)
    body["extra"] = trace.extra
    body["steps"] = forms.StepOut(trace.steps.order_by("sequence"), many=True).data
    body["reflections"] = forms.ReflectionShort(trace.reflections.order_by("created_at"), many=True).data
    return body


class StepsView(TokenView):
    token_scopes = {"POST": TRACE}

    @extend_schema(
        operation_id="traces_append",
        request=forms.AppendDocumented,
        responses={201: forms.AppendOut},
        examples=[examples.MORE],
    )
    @idempotent
    def post(self, request: Request, trace_id: uuid.UUID) -> Response:
        """Add steps to an open trace. Parallel calls take turns; with `sequence` a repeat changes nothing."""
        caller = self.caller(request)
        return Response(append(caller, find_trace(caller, trace_id), request.data), status=201)


def append(caller: Caller, trace: Trace, body: dict[str, Any]) -> dict[str, Any]:
    """Add the steps of a payload to a trace; say where they went."""
    wanted = read_input(forms.AppendIn, body)
    steps = read_steps(body.get("steps"), wanted["format"])
    first = actions.append_steps(
        team=caller.team, by=caller.actor, trace=trace, steps=steps, sequence=wanted["sequence"]
    )
    trace.refresh_from_db(fields=["step_count"])
    return {"id": str(trace.pk), "sequence": first, "step_count": trace.step_count}


class FinishView(TokenView):
    token_scopes = {"POST": TRACE}

    @extend_schema(operation_id="traces_finish", request=forms.FinishIn, responses=forms.TraceWritten)
    @idempotent
    def post(self, request: Request, trace_id: uuid.UUID) -> Response:
        """End a trace: succeeded, failed or interrupted."""
        caller = self.caller(request)
        trace = find_trace(caller, trace_id)
        return Response(written(trace, finish(caller, trace, request.data)))


def finish(caller: Caller, trace: Trace, body: dict[str, Any]) -> Reflection:
    """End a trace as a payload says; `trace` has its new status afterwards."""
    reflection = actions.finish_trace(
        team=caller.team, by=caller.actor, trace=trace, token=caller.token, **read_input(forms.FinishIn, body)
    )
    trace.refresh_from_db(fields=["status"])
    return reflection
