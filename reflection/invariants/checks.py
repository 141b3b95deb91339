"""The invariants, each a query for the rows that break it. An empty result is what we want."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import or_

from django.db import models
from django.db.models import Count, Exists, F, FloatField, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Abs, Cast, Coalesce

from hindsight_site.accounts.models import AuditReason, Team
from memories.enums import FailureClass, Status, Tier
from memories.models import (
    Evidence,
    Feedback,
    Memory,
    MemoryTerms,
    MemoryVector,
    Merge,
    QuarantineCase,
    RecallHit,
    Relation,
    Revision,
)
from memories.policies import LIVE, SEARCHED
from reflection.enums import StepKind
from reflection.models import ReviewItem, Step, Trace, Verdict
from reflection.review.forgetting import WORDED

NEVER_SEARCHED = (Status.REJECTED, Status.FORGOTTEN)


@dataclass(frozen=True, slots=True)
class Check:
    """`broken` finds the rows; `repair` mends them (None: a person has to look)."""

    name: str
    says: str
    broken: Callable[[Team], QuerySet]
    is_repaired: bool = False


def _of(memory: str = "memory_id") -> Q:
    return Q(**{memory: OuterRef("pk")})


def _evidence_without_step(team: Team) -> QuerySet:
    rows = Evidence.objects.of(team).filter(removed_at=None).exclude(step_id=None, trace_id=None)
    return rows.filter(~Exists(Step.objects.of(team).filter(pk=OuterRef("step_id"))))


def _quotes_of_removed(team: Team) -> QuerySet:
    # A quote that stood under an earlier text of its memory is kept, as long as its step is.
    rows = Evidence.objects.of(team).exclude(removed_at=None).filter(~Q(quote="") | ~Q(step_id=None))
    return rows.filter(~Exists(Step.objects.of(team).filter(pk=OuterRef("step_id"))))


def _relations_elsewhere(team: Team) -> QuerySet:
    memories = Memory.objects.of(team)
    ends = Exists(memories.filter(pk=OuterRef("source_id"))) & Exists(memories.filter(pk=OuterRef("target_id")))
    return Relation.objects.of(team).filter(~ends)


def _unsearchable(team: Team) -> QuerySet:
    rows = Memory.objects.of(team).filter(status__in=SEARCHED)
    terms = Exists(MemoryTerms.objects.of(team).filter(_of()))
    return rows.filter(~terms | ~Exists(MemoryVector.objects.of(team).filter(_of())))


def _search_rows_left(team: Team) -> QuerySet:
    gone = Memory.objects.of(team).filter(status__in=NEVER_SEARCHED)
    terms = Exists(MemoryTerms.objects.of(team).filter(_of()))
    return gone.filter(terms | Exists(MemoryVector.objects.of(team).filter(_of())))


def _search_rows_without_memory(team: Team) -> QuerySet:
    return MemoryTerms.objects.of(team).filter(~Exists(Memory.objects.of(team).filter(pk=OuterRef("memory_id"))))


def _search_rows_differ(team: Team) -> QuerySet:
    """Rows that say another status or scope than their memory: a demoted memory could be recalled."""
    wrong = ~Q(status=OuterRef("status")) | ~Q(scope_id=OuterRef("scope_id"))
    terms = Exists(MemoryTerms.objects.of(team).filter(_of()).filter(wrong))
    vectors = Exists(MemoryVector.objects.of(team).filter(_of()).filter(wrong))
    return Memory.objects.of(team).exclude(status__in=NEVER_SEARCHED).filter(terms | vectors)


def _forgotten_with_remains(team: Team) -> QuerySet:
    rows = Memory.objects.of(team).filter(status=Status.FORGOTTEN)
    said = ~Q(tags=[]) | ~Q(metadata={}) | ~Q(environment={}) | ~Q(actor="") | ~Q(fingerprint="")
    ident = Cast(OuterRef("pk"), models.TextField())
    reasons = AuditReason.objects.of(team).filter(object_type="memory", object_id=ident)
    hanging = (
        Exists(reasons.exclude(verb="memory.forgotten"))
        | Exists(Verdict.objects.of(team).filter(WORDED, item__memory_id=OuterRef("pk")))
        | Exists(Evidence.objects.of(team).filter(_of()))
        | Exists(Revision.objects.of(team).filter(_of()))
        | Exists(Merge.objects.of(team).filter(_of()))
        | Exists(QuarantineCase.objects.of(team).filter(_of()))
        | Exists(Relation.objects.of(team).filter(_of("source_id")))
        | Exists(Relation.objects.of(team).filter(_of("target_id")))
    )
    return rows.filter(said | hanging)


def _live_against_the_rules(team: Team) -> QuerySet:
    passing = ~Q(failure_class__in=[FailureClass.NONE, FailureClass.PERMANENT])
    return Memory.objects.of(team).filter(status__in=LIVE, tier=Tier.SEMANTIC).filter(passing)


def _uncounted_recalls(team: Team) -> QuerySet:
    """Handed out more often than counted. A merge may count more than one memory's own receipts."""
    hits = RecallHit.objects.of(team).filter(_of()).order_by().values("memory_id").annotate(n=Count("pk")).values("n")
    return Memory.objects.of(team).annotate(n=Coalesce(Subquery(hits), 0)).filter(access_count__lt=F("n"))


def _miscounted_feedback(team: Team) -> QuerySet:
    told = Feedback.objects.of(team).filter(_of(), adopted=True).exclude(success=None).order_by().values("memory_id")
    judged = told.annotate(n=Count("pk")).values("n")
    succeeded = told.annotate(n=Count("pk", filter=Q(success=True))).values("n")
    rows = Memory.objects.of(team).exclude(status=Status.FORGOTTEN)
    rows = rows.annotate(judged=Coalesce(Subquery(judged), 0), succeeded=Coalesce(Subquery(succeeded), 0))
    return rows.filter(~Q(reuse_count=F("judged")) | ~Q(reuse_success_count=F("succeeded")))


def _oversupported(team: Team) -> QuerySet:
    """More support than traces among the evidence."""
    by_memory = Evidence.objects.of(team).filter(_of()).order_by().values("memory_id")
    traces = by_memory.annotate(n=Count("trace_id", distinct=True)).values("n")
    rows = Memory.objects.of(team).exclude(status=Status.FORGOTTEN).filter(support_count__gt=1)
    return rows.annotate(n=Coalesce(Subquery(traces), 0)).filter(support_count__gt=F("n") + 1)


def _confidence_off(team: Team) -> QuerySet:
    mean = F("alpha") / (F("alpha") + F("beta"))
    off = Abs(F("confidence") - mean, output_field=FloatField())
    return Memory.objects.of(team).filter(alpha__gt=0).annotate(off=off).filter(off__gt=Value(1e-6))


def _miscounted_steps(team: Team) -> QuerySet:
    steps = Step.objects.of(team).filter(trace_id=OuterRef("pk")).order_by().values("trace_id")
    all_of_them = steps.annotate(n=Count("pk")).values("n")
    calls = steps.annotate(n=Count("pk", filter=Q(kind=StepKind.TOOL_CALL))).values("n")
    rows = Trace.objects.of(team).annotate(n=Coalesce(Subquery(all_of_them), 0), calls=Coalesce(Subquery(calls), 0))
    return rows.filter(~Q(step_count=F("n")) | ~Q(tool_call_count=F("calls")))


def _items_without_memory(team: Team) -> QuerySet:
    return ReviewItem.objects.of(team).filter(~Exists(Memory.objects.of(team).filter(pk=OuterRef("memory_id"))))


def _unreadable_times(model: type[models.Model]) -> Callable[[Team], QuerySet]:
    """The database keeps years before 1 and after 9999; whoever reads such a row fails."""
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    names = [field.name for field in model._meta.concrete_fields if isinstance(field, models.DateTimeField)]
    beyond = reduce(or_, (Q(**{f"{name}__lt": first}) | Q(**{f"{name}__gt": last}) for name in names))
    return lambda team: model._default_manager.filter(beyond, team_id=team.pk)


CHECKS = (
    Check("evidence_without_step", "evidence whose step is gone without saying so", _evidence_without_step, True),
    Check("quotes_of_removed_evidence", "quotes of a step that is gone", _quotes_of_removed, True),
    Check("relations_across_teams", "relations with an end outside the team", _relations_elsewhere),
    Check("memories_without_search_rows", "memories that can be recalled but not found", _unsearchable, True),
    Check("search_rows_of_gone_memories", "search rows of rejected or forgotten memories", _search_rows_left, True),
    Check("search_rows_without_memory", "search rows without a memory", _search_rows_without_memory, True),
    Check("search_rows_that_differ", "search rows with another status or scope", _search_rows_differ, True),
    Check("forgotten_with_remains", "forgotten memories that still hold something", _forgotten_with_remains, True),
    Check("live_against_the_rules", "live memories that the rules forbid", _live_against_the_rules),
    Check("uncounted_recalls", "memories handed out more often than counted", _uncounted_recalls, True),
    Check("miscounted_feedback", "feedback counts that differ from the feedback", _miscounted_feedback, True),
    Check("oversupported", "more support than independent traces", _oversupported),
    Check("confidence_off", "confidence that is not the mean of its counts", _confidence_off, True),
    Check("miscounted_steps", "step counts that differ from the steps", _miscounted_steps, True),
    Check("memories_with_unreadable_times", "memories with a time that cannot be read", _unreadable_times(Memory)),
    Check("traces_with_unreadable_times", "traces with a time that cannot be read", _unreadable_times(Trace)),
    Check("items_without_memory", "sampled memories that do not exist", _items_without_memory),
)
