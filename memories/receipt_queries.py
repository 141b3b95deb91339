"""Reading receipts: which memory text reached which agent when. Shared by the pages and the API."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from hindsight_site.accounts.models import Agent, Team
from hindsight_site.refusals import NotFound
from memories import contents, explaining, packing, queries, receipts
from memories.advice import is_warning
from memories.enums import Status
from memories.models import Evidence, Feedback, Memory, Recall, RecallHit, Revision

MOST_HANDED_OUT = 500  # newest hits that are looked at for echoes
WEIGHED = {"vector", "keyword", "context", "session", "time", "exact"}  # the parts that make a hit relevant
UNTOLD_BUDGET = 800  # tokens: the default, for receipts from before it was kept


@dataclass(frozen=True, slots=True)
class ReceiptFilters:
    """What a list of receipts may be narrowed by; `created_after` is included, `created_before` is not."""

    memory: uuid.UUID | None = None
    words: str = ""  # all of them in the question, or in what a memory that was handed out says or said
    agent: str = ""  # a slug
    status: str = ""  # enums.RecallStatus
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """One memory as one recall handed it out.

    `content` is the text at that revision: None when it was forgotten since, or when the reader may not
    see the memory (any more). `feedback` is what became of it.
    """

    hit: RecallHit
    memory: Memory
    content: str | None
    feedback: Feedback | None

    @property
    def is_current(self) -> bool:
        """Whether the memory still says what was handed out."""
        return self.hit.revision == self.memory.revision and self.memory.status != Status.FORGOTTEN

    @property
    def why(self) -> list[explaining.Part]:
        """What made it relevant, in words; empty where the receipt does not hold all of it."""
        return explaining.evidence(self.hit.parts) if self.hit.parts.keys() >= WEIGHED else []

    @property
    def factors(self) -> list[tuple[str, float]]:
        """What else its score was made of, by name."""
        return sorted((name, value) for name, value in self.hit.parts.items() if name not in WEIGHED or not self.why)

    @property
    def snippet(self) -> str | None:
        """What agents are shown of the text."""
        return self.content and (contents.snippet(self.content) or self.content)


@dataclass(frozen=True, slots=True)
class HandedOut:
    """The texts that recalls gave away, each once and as it read then, and the ids of those recalls."""

    texts: tuple[str, ...]
    recall_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Context:
    """The text an agent was handed, put together again. `exact`: it is the same to the letter.

    `text` is None when one of its memories cannot be read any more.
    """

    text: str | None
    exact: bool


def visible(team: Team, agent: Agent | None) -> QuerySet[Recall]:
    """The receipts a caller may see: an agent its own, the team all of them."""
    recalls = Recall.objects.of(team).select_related("agent", "token")
    return recalls if agent is None else recalls.filter(agent=agent)


def get(team: Team, agent: Agent | None, recall_id: uuid.UUID | str) -> Recall:
    """Return one visible receipt, or raise `NotFound`."""
    found = visible(team, agent).filter(pk=recall_id).first()
    if found is None:
        raise NotFound("There is no such recall.", code="recall_not_found")
    return found


def narrow(recalls: QuerySet[Recall], team: Team, filters: ReceiptFilters) -> QuerySet[Recall]:
    """Apply `filters`."""
    exact = {
        "agent__slug": filters.agent,
        "status": filters.status,
        "created_at__gte": filters.created_after,
        "created_at__lt": filters.created_before,
    }
    recalls = recalls.filter(**{name: value for name, value in exact.items() if value not in ("", None)})
    if filters.memory is not None:
        hits = RecallHit.objects.of(team).filter(memory=filters.memory)
        recalls = recalls.filter(pk__in=hits.values("recall_id"))
    if filters.words:
        asked, told = queries.has_words("query", filters.words), queries.has_words("content", filters.words)
        said = Q(memory__in=Memory.objects.of(team).filter(told).values("pk"))
        said |= Q(memory__in=Revision.objects.of(team).filter(told).values("memory_id"))
        hits = RecallHit.objects.of(team).filter(said)
        recalls = recalls.filter(asked | Q(pk__in=hits.values("recall_id")))
    return recalls


def served(recall: Recall, agent: Agent | None) -> list[Served]:
    """Return what a recall handed out, best first, as far as `agent` (None: a person) may read it now."""
    team = recall.team
    rows = RecallHit.objects.of(team).filter(recall=recall)
    hits = list(rows.select_related("memory__scope").order_by("rank"))
    seen = {hit.memory_id for hit in hits}
    if agent is not None:
        seen = set(queries.visible(team, agent).filter(pk__in=seen).values_list("pk", flat=True))
    earlier = _earlier(team, [hit for hit in hits if hit.revision != hit.memory.revision])
    told = {row.memory_id: row for row in Feedback.objects.of(team).filter(recall=recall)}
    return [
        Served(
            hit=hit,
            memory=hit.memory,
            content=_text(hit, earlier) if hit.memory_id in seen else None,
            feedback=told.get(hit.memory_id),
        )
        for hit in hits
    ]


def first_texts(team: Team, hits: Sequence[RecallHit]) -> dict[uuid.UUID, str]:
    """By recall, the text of its best hit as it was handed out; left out where it is no longer kept."""
    best = [hit for hit in hits if hit.rank == 1]
    earlier = _earlier(team, [hit for hit in best if hit.revision != hit.memory.revision])
    return {hit.recall_id: text for hit in best if (text := _text(hit, earlier))}


def quotes_behind(team: Team, handed_out: Sequence[Served]) -> dict[uuid.UUID, list[Evidence]]:
    """By memory, the quotes that it rests on or that stood under an earlier text of it, in order of their steps."""
    rows = Evidence.objects.of(team).filter(memory__in=[one.hit.memory_id for one in handed_out]).exclude(quote="")
    found: dict[uuid.UUID, list[Evidence]] = {}
    for row in rows.order_by("trace_id", "step_sequence", "start"):
        found.setdefault(row.memory_id, []).append(row)
    return found


def handed_out(
    *, team: Team, agent: Agent, token_id: uuid.UUID | None, session_id: str, since: datetime, until: datetime
) -> HandedOut:
    """Return what was handed out in a time to an agent, to the token that speaks for it, or in its session.

    All of it may echo in what the agent did then.
    """
    theirs = Q(recall__agent=agent)
    if token_id:
        theirs |= Q(recall__agent=None, recall__token=token_id)
    if session_id:
        theirs |= Q(recall__session_id=session_id)
    rows = RecallHit.objects.of(team).filter(theirs, recall__created_at__gte=since, recall__created_at__lte=until)
    hits = list(rows.select_related("memory").order_by("-id")[:MOST_HANDED_OUT])
    earlier = _earlier(team, [hit for hit in hits if hit.revision != hit.memory.revision])
    texts = dict.fromkeys(text for hit in hits if (text := _text(hit, earlier)))
    return HandedOut(tuple(texts), frozenset(str(hit.recall_id) for hit in hits))


def _earlier(team: Team, hits: Sequence[RecallHit]) -> dict[tuple[uuid.UUID, int], str]:
    """The texts of earlier revisions, by memory and number."""
    if not hits:
        return {}
    wanted = Q()
    for hit in hits:
        wanted |= Q(memory=hit.memory_id, number=hit.revision)
    rows = Revision.objects.of(team).filter(wanted).values_list("memory_id", "number", "content")
    return {(memory, number): content for memory, number, content in rows}


def _text(hit: RecallHit, earlier: dict[tuple[uuid.UUID, int], str]) -> str | None:
    if hit.memory.status == Status.FORGOTTEN:
        return None
    if hit.revision == hit.memory.revision:
        return hit.memory.content
    return earlier.get((hit.memory_id, hit.revision))


def context_of(recall: Recall, handed_out: Sequence[Served]) -> Context:
    """Put the context together again from the revisions that were served."""
    lines = [
        packing.Line(one.snippet, one.memory.kind, one.memory.scope.slug, one.hit.contested, is_warning(one.content))
        for one in handed_out
        if one.snippet is not None and one.content is not None
    ]
    if len(lines) < len(handed_out):
        return Context(None, exact=False)
    text = packing.pack(lines, recall.options.get("token_budget", UNTOLD_BUDGET))
    return Context(text, exact=receipts.digest(text) == recall.context_digest)
