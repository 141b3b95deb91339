"""Staff curation of memories: judge them through the same actions as everyone; history is read-only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL
from django.http import HttpRequest

from hindsight_site.accounts.admin_base import ReadOnly, staff_action
from hindsight_site.accounts.staff import chosen_team
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
    VectorChange,
)
from memories.search import tokens

WHEN = admin.DateFieldListFilter  # today, the past 7 days, this month, this year
MOST_WORDS = 20  # of a search
MOST_FOUND = 1_000  # memories of a search by words: the newest


def judged(verb: str, words: str, action: Callable[..., Memory]) -> Callable[..., None]:
    """An admin action that judges each memory."""
    return staff_action(
        f"{verb}_selected",
        f"{words} selected memories",
        lambda team, by, memory: action(team=team, by=by, memory=memory, reason="by staff"),
    )


@admin.register(Memory)
class MemoryAdmin(ReadOnly):
    list_display = ("__str__", "team", "scope", "kind", "tier", "status", "confidence", "trust", "created_at")
    list_filter = ("status", "kind", "tier", "trust", "needs_review", "pinned", ("created_at", WHEN))
    list_select_related = ("team", "scope")
    search_fields = ("pk",)
    search_help_text = "An id, or words of the text"
    actions = [
        judged("approve", "Approve", actions.approve),
        judged("demote", "Demote", actions.demote),
        judged("archive", "Archive", actions.archive),
        judged("restore", "Restore", actions.restore),
        judged("release", "Release from quarantine the", actions.release),
        judged("reject", "Reject from quarantine the", actions.reject),
    ]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        by_id, _ = super().get_search_results(request, queryset, search_term)
        team, wanted = chosen_team(request), words_query(search_term)
        if team is None or not wanted or by_id.exists():
            return by_id, False
        has_them = RawSQL("tokens @@ %s::tsquery", [wanted], output_field=BooleanField())  # noqa: S611
        found = MemoryTerms.objects.of(team).alias(has_them=has_them).filter(has_them=True)
        # Asked apart: beside a table with row-level security the tokens would be no condition of the index.
        newest = list(found.order_by("-memory_id").values_list("memory_id", flat=True)[:MOST_FOUND])
        return queryset.filter(pk__in=newest), False


def words_query(text: str) -> str:
    """Return the tsquery for memories that hold every word of `text`, in any of its forms; empty for none.

    Of a script without spaces all words and pairs of characters have to be there.
    """
    words = []
    for word in text.split()[:MOST_WORDS]:
        terms = tokens.query_tokens(word).terms
        whole = [term.lexeme for term in terms if term.kind != "part"]
        if any(term.kind == "bigram" for term in terms):
            words += [tokens.tsquery_literal([lexeme]) for lexeme in whole]
        elif whole:
            words.append(f"({tokens.tsquery_literal(whole)})")
    return " & ".join(words)


@admin.register(Scope)
class ScopeAdmin(ReadOnly):
    list_display = ("slug", "team", "name", "kind", "review_mode")
    list_filter = ("kind", "review_mode")
    list_select_related = ("team",)
    search_fields = ("pk", "slug__startswith")
    search_help_text = "An id, or the beginning of a short name"


@admin.register(ScopeGrant)
class ScopeGrantAdmin(ReadOnly):
    list_display = ("agent", "scope", "team", "can_read", "can_write")
    list_filter = ("can_read", "can_write")
    list_select_related = ("agent", "scope", "team")


@admin.register(Evidence)
class EvidenceAdmin(ReadOnly):
    list_display = ("__str__", "team", "role", "step_sequence", "created_at", "removed_at")
    list_select_related = ("team",)
    search_fields = ("memory_id", "trace_id", "step_id")
    search_help_text = "The id of a memory, a trace or a step"


@admin.register(Revision)
class RevisionAdmin(ReadOnly):
    list_display = ("memory_id", "number", "team", "actor_label", "reason", "valid_until")
    list_select_related = ("team",)
    search_fields = ("memory_id",)
    search_help_text = "The id of a memory"


@admin.register(Relation)
class RelationAdmin(ReadOnly):
    list_display = ("source_id", "kind", "target_id", "team", "weight", "settled_at")
    list_filter = ("kind",)
    list_select_related = ("team",)
    search_fields = ("source_id", "target_id")
    search_help_text = "The id of a memory at either end"


@admin.register(Recall)
class RecallAdmin(ReadOnly):
    list_display = ("__str__", "team", "agent", "status", "best_relevance", "degraded", "took_ms", "created_at")
    list_filter = ("status", "degraded", ("created_at", WHEN))
    list_select_related = ("team", "agent")
    search_fields = ("pk", "agent_id")
    search_help_text = "The id of a recall or of an agent"


@admin.register(RecallHit)
class RecallHitAdmin(ReadOnly):
    list_display = ("recall_id", "rank", "memory_id", "revision", "team", "score", "relevance")
    list_select_related = ("team",)
    search_fields = ("recall_id", "memory_id")
    search_help_text = "The id of a recall or of a memory"


@admin.register(Feedback)
class FeedbackAdmin(ReadOnly):
    list_display = ("memory_id", "team", "adopted", "success", "created_at")
    list_filter = ("adopted", "success")
    list_select_related = ("team",)
    search_fields = ("recall_id", "memory_id")
    search_help_text = "The id of a recall or of a memory"


# Composite primary keys have no page in the admin; these tables hold nothing to read anyway.
NOT_SHOWN = (MemoryTerms, MemoryVector, VectorChange)
