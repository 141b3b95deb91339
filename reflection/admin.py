"""Staff view of traces, runs and reviews. All of it is history: read-only."""

from __future__ import annotations

from django.contrib import admin

from hindsight_site.accounts.admin import ReadOnly
from reflection.models import Reflection, ReflectionResult, ReviewBatch, ReviewItem, Step, Trace, Verdict


@admin.register(Trace)
class TraceAdmin(ReadOnly):
    list_display = ("__str__", "team", "agent", "status", "step_count", "created_at")
    list_filter = ("status",)
    list_select_related = ("team", "agent")
    search_fields = ("=id", "=session_id", "task")
    date_hierarchy = "created_at"


@admin.register(Step)
class StepAdmin(ReadOnly):
    list_display = ("trace_id", "sequence", "team", "role", "kind", "tool", "is_error")
    list_filter = ("role", "kind", "is_error")
    list_select_related = ("team",)
    search_fields = ("=trace__id",)


@admin.register(Reflection)
class ReflectionAdmin(ReadOnly):
    list_display = ("id", "team", "agent", "status", "reason", "distiller", "attempts", "error", "created_at")
    list_filter = ("status", "distiller")
    list_select_related = ("team", "agent")
    search_fields = ("=id", "=trace__id")
    date_hierarchy = "created_at"


@admin.register(ReflectionResult)
class ReflectionResultAdmin(ReadOnly):
    list_display = ("reflection_id", "memory_id", "team", "effect")
    list_filter = ("effect",)
    list_select_related = ("team",)
    search_fields = ("=reflection__id", "=memory__id")


@admin.register(ReviewBatch)
class ReviewBatchAdmin(ReadOnly):
    list_display = ("week", "team", "status", "opens_at", "closes_at")
    list_filter = ("status",)
    list_select_related = ("team",)


@admin.register(ReviewItem)
class ReviewItemAdmin(ReadOnly):
    list_display = ("batch", "position", "team", "stratum", "state", "memory_id")
    list_filter = ("state", "stratum")
    list_select_related = ("team", "batch")
    search_fields = ("=memory__id",)


@admin.register(Verdict)
class VerdictAdmin(ReadOnly):
    list_display = ("item_id", "team", "reviewer", "decision", "reason", "created_at", "undone_at")
    list_filter = ("decision", "reason")
    list_select_related = ("team", "reviewer")
    search_fields = ("=item__id",)
