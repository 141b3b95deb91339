"""Staff curation of memories: judge them through the same actions as everyone; history is read-only."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from hindsight_site.accounts.admin import ReadOnly
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.refusals import Refused
from memories import actions
from memories.models import (
    Evidence,
    Feedback,
    Memory,
    MemoryTerms,
    MemoryVector,
    Recall,
    RecallHit,
    Relation,
    Revision,
    Scope,
    ScopeGrant,
)


def judged(verb: str, action: Callable[..., Memory]) -> Callable:
    """An admin action that calls a domain action for each memory, inside its own team."""

    @admin.action(description=f"{verb.capitalize()} selected memories", permissions=["view"])
    def apply(modeladmin: admin.ModelAdmin, request: HttpRequest, chosen: QuerySet[Memory]) -> None:
        done = 0
        for memory in chosen.select_related("team"):
            try:
                with team_transaction(memory.team):
                    action(team=memory.team, by=person(request.user), memory=memory, reason="by staff")  # type: ignore[arg-type]
                done += 1
            except Refused as refusal:
                modeladmin.message_user(request, f"{memory}: {refusal}", messages.WARNING)
        modeladmin.message_user(request, f"{done} memories: {verb}.")

    apply.__name__ = f"{verb}_selected"
    return apply


@admin.register(Memory)
class MemoryAdmin(ReadOnly):
    list_display = ("__str__", "team", "scope", "kind", "tier", "status", "confidence", "trust", "created_at")
    list_filter = ("status", "kind", "tier", "trust", "needs_review", "pinned")
    list_select_related = ("team", "scope")
    search_fields = ("=id", "=fingerprint", "content")
    search_help_text = "An id, or words of the text"
    actions = [
        judged("approve", actions.approve),
        judged("demote", actions.demote),
        judged("archive", actions.archive),
        judged("restore", actions.restore),
    ]


@admin.register(Scope)
class ScopeAdmin(ReadOnly):
    list_display = ("slug", "team", "name", "kind", "review_mode")
    list_filter = ("kind", "review_mode")
    list_select_related = ("team",)
    search_fields = ("slug", "name")


@admin.register(ScopeGrant)
class ScopeGrantAdmin(ReadOnly):
    list_display = ("agent", "scope", "team", "can_read", "can_write")
    list_select_related = ("agent", "scope", "team")


@admin.register(Evidence)
class EvidenceAdmin(ReadOnly):
    list_display = ("__str__", "team", "role", "step_sequence", "created_at", "removed_at")
    list_select_related = ("team",)
    search_fields = ("=memory__id", "=trace_id")


@admin.register(Revision)
class RevisionAdmin(ReadOnly):
    list_display = ("memory_id", "number", "team", "actor_label", "reason", "valid_until")
    list_select_related = ("team",)
    search_fields = ("=memory__id",)


@admin.register(Relation)
class RelationAdmin(ReadOnly):
    list_display = ("source_id", "kind", "target_id", "team", "weight", "settled_at")
    list_filter = ("kind",)
    list_select_related = ("team",)
    search_fields = ("=source__id", "=target__id")


@admin.register(Recall)
class RecallAdmin(ReadOnly):
    list_display = (
        "__str__",
        "team",
        "agent",
        "status",
        "best_relevance",
        "degraded",
        "took_ms",
        "created_at",
    )
    list_filter = ("status", "degraded")
    list_select_related = ("team", "agent")
    search_fields = ("=id", "query")
    date_hierarchy = "created_at"


@admin.register(RecallHit)
class RecallHitAdmin(ReadOnly):
    list_display = ("recall_id", "rank", "memory_id", "revision", "team", "score", "relevance")
    list_select_related = ("team",)
    search_fields = ("=recall__id", "=memory__id")


@admin.register(Feedback)
class FeedbackAdmin(ReadOnly):
    list_display = ("memory_id", "team", "adopted", "success", "created_at")
    list_filter = ("adopted", "success")
    list_select_related = ("team",)
    search_fields = ("=recall__id", "=memory__id")


# Composite primary keys have no page in the admin; these two tables hold nothing to read anyway.
NOT_SHOWN = (MemoryTerms, MemoryVector)
