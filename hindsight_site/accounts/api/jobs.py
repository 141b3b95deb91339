"""Jobs over REST: long work that was asked for, how far it is, and how it ended."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.decorators import method_decorator
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import JobKind, JobStatus, TokenScope
from hindsight_site.accounts.jobs import actions, queries
from hindsight_site.accounts.jobs.estimates import estimate
from hindsight_site.accounts.jobs.models import Job
from hindsight_site.api.fields import ObjectField
from hindsight_site.api.idempotency import idempotent
from hindsight_site.api.views import TokenView, page, read_input
from hindsight_site.api.waiting import WAIT, until_ended, wait_seconds

LOOK_EVERY_SECONDS = 0.2


class ProgressOut(serializers.Serializer):
    done = serializers.IntegerField()
    total = serializers.IntegerField(help_text="0 while it is not known.")
    what = serializers.CharField(help_text="What is being done now.")
    share = serializers.FloatField(allow_null=True, help_text="0..1; null while the total is not known.")
    seconds_left = serializers.FloatField(allow_null=True, help_text="An estimate; null without a ground for one.")


class JobOut(serializers.ModelSerializer):
    arguments = ObjectField(help_text="What was asked for; never the text to erase.")
    progress = serializers.SerializerMethodField()
    result = ObjectField(help_text="Counts and reasons, once it is done.")
    asked_by = serializers.CharField(help_text="The person or token that asked, or the schedule.")

    class Meta:
        model = Job
        fields = [
            "id", "kind", "status", "arguments", "progress", "result", "error", "attempts", "asked_by", "created_at",
            "begun_at", "finished_at", "cancel_requested_at",
        ]  # fmt: skip

    @extend_schema_field(ProgressOut)
    def get_progress(self, job: Job) -> dict[str, Any]:
        told = estimate(done=job.done, total=job.total, begun_at=job.begun_at, now=timezone.now())
        left = told.seconds_left if job.is_open else None
        return {"done": job.done, "total": job.total, "what": job.doing, "share": told.share, "seconds_left": left}


class JobFilters(serializers.Serializer):
    kind = serializers.ChoiceField(choices=JobKind.choices, required=False, default="")
    status = serializers.ChoiceField(choices=JobStatus.choices, required=False, default="")


def accepted(job: Job) -> Response:
    """The answer to a request for long work: the job, and where it will be."""
    return Response(JobOut(job).data, status=202, headers={"Location": f"/api/v1/jobs/{job.pk}"})


class JobsView(TokenView):
    token_scopes = {"GET": TokenScope.MEMORY_READ}

    @extend_schema(operation_id="jobs_list", parameters=[JobFilters], responses=JobOut(many=True))
    def get(self, request: Request) -> Response:
        """Long work of the team, newest first; for a token bound to an agent, what that agent asked for."""
        caller = self.caller(request)
        wanted = read_input(JobFilters, request.query_params.dict())
        jobs = queries.visible(caller.team, caller.agent)
        jobs = jobs.filter(**{name: value for name, value in wanted.items() if value})
        return page(request, jobs, lambda found: JobOut(found, many=True).data)


@method_decorator(transaction.non_atomic_requests, name="dispatch")
class JobView(TokenView):
    """Waits outside any transaction, so that nothing is held while nothing happens."""

    token_scopes = {"GET": TokenScope.MEMORY_READ}

    @extend_schema(operation_id="jobs_read", parameters=[WAIT], responses=JobOut)
    def get(self, request: Request, job_id: uuid.UUID) -> Response:
        """One job: how far it is, and what it did."""
        return Response(awaited(self.caller(request), job_id, wait_seconds(request)))


def awaited(caller: Caller, job_id: uuid.UUID, seconds: float) -> dict[str, Any]:
    """Return a job when it has ended, or as it stands after `seconds`. Call outside a transaction."""
    return until_ended(
        caller.team,
        lambda: queries.get(caller.team, caller.agent, job_id),
        lambda job: job.is_open,
        lambda job: JobOut(job).data,
        seconds=seconds,
        every=LOOK_EVERY_SECONDS,
    )


class CancelView(TokenView):
    token_scopes = {"POST": TokenScope.ADMIN}

    @extend_schema(operation_id="jobs_cancel", request=None, responses=JobOut)
    @idempotent
    def post(self, request: Request, job_id: uuid.UUID) -> Response:
        """Stop a job: at once when it waits, else before its next batch. What it did until then stays done."""
        caller = self.caller(request)
        job = queries.get(caller.team, caller.agent, job_id)
        return Response(JobOut(actions.cancel(team=caller.team, by=caller.actor, job=job)).data)
