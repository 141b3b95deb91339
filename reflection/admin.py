"""Staff view of traces, runs and reviews. All of it is history: read-only."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from hindsight_site.accounts.admin_base import Bounded, ReadOnly
from reflection.models import (
    Reflection,
    ReflectionResult,
    ReviewBatch,
    ReviewItem,
    ReviewMail,
    Step,
    TeamModel,
    Trace,
    Verdict,
)

WHEN = admin.DateFieldListFilter  # today, the past 7 days, this month, this year


@admin.register(Trace)
class TraceAdmin(ReadOnly):
    list_display = ("__str__", "team", "agent", "status", "step_count", "created_at")
    list_filter = ("status", ("created_at", WHEN))
    list_select_related = ("team", "agent")
    search_fields = ("pk", "agent_id", "session_id")
    search_help_text = "The id of a trace, an agent or a session"


@admin.register(Step)
class StepAdmin(ReadOnly):
    list_display = ("trace_id", "sequence", "team", "role", "kind", "tool", "is_error")
    list_filter = ("role", "kind", "is_error")
    list_select_related = ("team",)
    search_fields = ("pk", "trace_id")
    search_help_text = "The id of a step or of a trace"


class DistillerFilter(Bounded):
    title, parameter_name, column = "distiller", "distiller", "distiller"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("rules", "Rules"), ("model", "Model")]


@admin.register(Reflection)
class ReflectionAdmin(ReadOnly):
    list_display = ("id", "team", "agent", "status", "reason", "distiller", "attempts", "error", "created_at")
    list_filter = ("status", DistillerFilter, ("created_at", WHEN))
    list_select_related = ("team", "agent")
    search_fields = ("pk", "trace_id")
    search_help_text = "The id of a reflection or of a trace"


@admin.register(ReflectionResult)
class ReflectionResultAdmin(ReadOnly):
    list_display = ("reflection_id", "memory_id", "team", "effect")
    list_filter = ("effect",)
    list_select_related = ("team",)
    search_fields = ("reflection_id", "memory_id")
    search_help_text = "The id of a reflection or of a memory"


@admin.register(ReviewBatch)
class ReviewBatchAdmin(ReadOnly):
    list_display = ("week", "team", "status", "opens_at", "closes_at")
    list_filter = ("status",)
    list_select_related = ("team",)
    search_fields = ("pk", "week")
    search_help_text = "An id, or a week such as 2026-W49"


@admin.register(ReviewItem)
class ReviewItemAdmin(ReadOnly):
    list_display = ("batch", "position", "team", "stratum", "state", "memory_id")
    list_filter = ("state", "stratum")
    list_select_related = ("team", "batch")
    search_fields = ("batch_id", "memory_id")
    search_help_text = "The id of a batch or of a memory"


@admin.register(Verdict)
class VerdictAdmin(ReadOnly):
    list_display = ("item_id", "team", "reviewer", "decision", "reason", "created_at", "undone_at")
    list_filter = ("decision", "reason")
    list_select_related = ("team", "reviewer")
    search_fields = ("item_id",)
    search_help_text = "The id of an item of a batch"


@admin.register(ReviewMail)
class ReviewMailAdmin(ReadOnly):
    list_display = ("kind", "about", "team", "user", "status", "attempts", "error", "changed_at")
    list_filter = ("status", "kind")
    list_select_related = ("team", "user")
    search_fields = ("pk", "about")
    search_help_text = "An id, a week such as 2026-W49, or the id of a verdict"


@admin.register(TeamModel)
class TeamModelAdmin(ReadOnly):
    list_display = ("team", "base_url", "model", "model_strong", "updated_at")
    list_select_related = ("team",)
    exclude = ("sealed_key",)
