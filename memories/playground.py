"""The playground: what a person asks on an agent's behalf, and the answer with everything that explains it."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.conf import settings
from django.http import QueryDict
from django.utils import timezone

from hindsight_site.accounts.models import Agent, Team
from memories import explaining, packing, recall, scopes, team_policy
from memories.enums import Kind, Status, Tier
from memories.explaining import Part
from memories.models import Memory, Recall, Scope
from memories.policies import LIVE
from memories.policy import Ranking
from memories.recall import Hit, Look, Question
from memories.search.fusion import Fused

SHOWN_LEFT_OUT = 5  # of each reason
TOP_K, TOKEN_BUDGET = 5, 800  # where nothing is said
MOST_TAGS, TAG_CHARS = 20, 60  # as in a call
_PAIR = re.compile(r"\s*([^:=]{1,60}?)\s*[:=]\s*(.*?)\s*")
EARLIEST = 2000  # a year before which nobody remembered anything here


class AskForm(forms.Form):
    """A question with every knob; the names are those of the address."""

    q = forms.CharField(
        label="Question",
        max_length=settings.MAX_QUERY_CHARS,
        strip=False,
        widget=forms.Textarea({"rows": 2, "placeholder": "As the agent would put it before a task"}),
    )
    agent = forms.ChoiceField(label="As", required=False)
    scope = forms.MultipleChoiceField(label="Scopes", required=False, widget=forms.CheckboxSelectMultiple)
    kind = forms.MultipleChoiceField(
        label="Kinds", required=False, choices=Kind.choices, widget=forms.CheckboxSelectMultiple
    )
    tier = forms.MultipleChoiceField(
        label="Tiers", required=False, choices=Tier.choices, widget=forms.CheckboxSelectMultiple
    )
    k = forms.IntegerField(
        label="Hits, at most",
        min_value=1,
        max_value=50,
        required=False,
        widget=forms.NumberInput({"placeholder": TOP_K}),
    )
    min_relevance = forms.FloatField(
        label="Least relevance",
        min_value=0,
        max_value=1,
        required=False,
        help_text="From 0 to 1. Empty: the usual floor; 0: no floor.",
        widget=forms.TextInput({"inputmode": "decimal"}),
    )
    budget = forms.IntegerField(
        label="Tokens of the context, at most",
        min_value=50,
        max_value=20_000,
        required=False,
        widget=forms.NumberInput({"placeholder": TOKEN_BUDGET}),
    )
    as_of = forms.DateTimeField(
        label="As of",
        required=False,
        help_text="What would have been recalled then. Empty: now.",
        widget=forms.DateTimeInput({"type": "datetime-local", "step": "any"}),
    )
    tags = forms.CharField(
        label="Tags", max_length=1000, required=False, help_text="With commas between them; a hit has all of them."
    )
    session = forms.CharField(
        label="Session", max_length=120, required=False, help_text="Its working memory is searched too."
    )
    environment = forms.CharField(
        label="Environment",
        max_length=2000,
        required=False,
        help_text="One a line: os = linux. Lessons from another one are left out.",
        widget=forms.Textarea({"rows": 2}),
    )
    archived = forms.BooleanField(label="Archived memories too", required=False)

    def __init__(self, data: QueryDict, agents: list[tuple[str, str]], readable: list[tuple[str, str]]) -> None:
        super().__init__(data if data.get("q") is not None else None)
        self.fields["agent"].choices = agents  # type: ignore[attr-defined]
        self.fields["scope"].choices = readable  # type: ignore[attr-defined]
        self.fields["scope"].error_messages["invalid_choice"] = (
            "%(value)s is no scope that this agent may read; those are listed here."
        )

    def clean_q(self) -> str:
        if not (query := unicodedata.normalize("NFC", self.cleaned_data["q"].replace("\r\n", "\n"))).strip():
            raise forms.ValidationError("Ask something.")
        return query

    def clean_tags(self) -> list[str]:
        tags = [tag for part in re.split("[,，]", self.cleaned_data["tags"]) if (tag := part.strip())]
        if len(tags) > MOST_TAGS or any(len(tag) > TAG_CHARS for tag in tags):
            raise forms.ValidationError(f"At most {MOST_TAGS} tags of up to {TAG_CHARS} characters each.")
        return tags

    def clean_environment(self) -> dict[str, str]:
        lines = [line for line in self.cleaned_data["environment"].splitlines() if line.strip()]
        pairs = [_PAIR.fullmatch(line) for line in lines]
        if not all(pairs):
            raise forms.ValidationError("Write one a line, a name and a value with = between them: os = linux.")
        return {pair[1]: pair[2] for pair in pairs if pair}

    def clean_as_of(self) -> datetime | None:
        moment = self.cleaned_data["as_of"]
        if moment is not None and not EARLIEST <= moment.year < 9999:
            raise forms.ValidationError(f"Choose a day after {EARLIEST}.")
        return moment and moment.astimezone(UTC)  # an odd offset is none to the database

    def is_tuned(self) -> bool:
        """Whether anything but the question and the agent was set, so that the knobs are shown."""
        return self.is_bound and (
            bool(set(self.errors) - {"q", "agent"})
            or any(self.data.get(name) for name in self.fields if name not in ("q", "agent"))
        )

    def question(self) -> Question:
        """What was asked; call it when the form is valid."""
        given = self.cleaned_data
        return Question(
            query=given["q"], session_id=given["session"], kinds=given["kind"], tiers=given["tier"], tags=given["tags"],
            environment=given["environment"], top_k=given["k"] or TOP_K, min_relevance=given["min_relevance"],
            token_budget=given["budget"] or TOKEN_BUDGET, include_archived=given["archived"], as_of=given["as_of"],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shown:
    """One hit with its explanation."""

    hit: Hit
    scope: str  # its name
    evidence: list[Part]
    score: list[Part]
    held_back: bool


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What was found and not handed out, for one reason; `best` are the first of `count`."""

    words: str
    count: int
    best: list[tuple[Memory, Fused]]


def bound_form(team: Team, data: QueryDict) -> tuple[AskForm, Agent | None, list[Scope]]:
    """The form for what an address or a form says, the agent it asks as, and the scopes that one may read."""
    agents = list(Agent.objects.of(team).order_by("name")[:500])
    agent = next((one for one in agents if one.slug == data.get("agent")), None)
    if agent is None and "q" not in data and "agent" not in data and agents:
        agent = agents[0]  # a question as nobody in particular finds no private memory: seldom what is meant
    readable = scopes.readable(team, agent)
    names = [("", "the team (its shared scopes)"), *((one.slug, one.name) for one in agents)]
    form = AskForm(data, names, [(scope.slug, scope.name) for scope in readable])
    form.initial["agent"] = agent.slug if agent else ""
    return form, agent, readable


def answer(team: Team, agent: Agent | None, readable: list[Scope], form: AskForm) -> dict[str, Any]:
    """Ask, and gather what the page shows of the answer. Leaves no receipt and counts nothing."""
    chosen = form.cleaned_data["scope"]
    searched = [scope for scope in readable if not chosen or scope.slug in chosen]
    question = form.question()
    found = recall.look(team=team, agent=agent, scopes=searched, question=question)
    ranking = team_policy.of(team).ranking
    names = {scope.slug: scope.name for scope in searched}
    return {
        "found": found,
        "hits": [_shown(hit, names[hit.scope], ranking) for hit in found.hits],
        "left_out": _left_out(team, found),
        "late": [explaining.LATE.get(name, name) for name in found.late],
        "tokens": packing.token_estimate(found.context),
        "budget": question.token_budget,
        "searched": searched,
        "as_of": question.as_of,
        "candidates": len(found.hits) + sum(len(those) for those in found.left_out.values()),
        "call": json.dumps(request_body(agent, question, chosen), ensure_ascii=False, indent=2),
    }


def _shown(hit: Hit, scope: str, ranking: Ranking) -> Shown:
    return Shown(
        hit=hit,
        scope=scope,
        evidence=explaining.evidence(hit.parts),
        score=explaining.score(hit.parts, hit.relevance, hit.tier, ranking),
        held_back=explaining.is_held_back(hit.parts, hit.relevance, hit.score, ranking),
    )


def _left_out(team: Team, found: Look) -> list[LeftOut]:
    """By reason, the best first; the texts in one query."""
    best = {reason: those[:SHOWN_LEFT_OUT] for reason, those in found.left_out.items() if those}
    ids = [one.memory_id for those in best.values() for one in those]
    memories = Memory.objects.of(team).select_related("scope").in_bulk(ids)
    return [
        LeftOut(
            words=explaining.LEFT_OUT.get(reason, reason),
            count=len(found.left_out[reason]),
            best=[(memories[one.memory_id], one) for one in those if one.memory_id in memories],
        )
        for reason, those in best.items()
    ]


def request_body(agent: Agent | None, question: Question, chosen: list[str]) -> dict[str, Any]:
    """The body of `POST /api/v1/recall` that asks the same; what is the default is left out."""
    body = {
        "query": question.query,
        "agent": agent.slug if agent else None,
        "session_id": question.session_id,
        "scopes": chosen,
        "kinds": list(question.kinds),
        "tiers": list(question.tiers),
        "tags": list(question.tags),
        "environment": question.environment,
        "top_k": question.top_k if question.top_k != TOP_K else None,
        "token_budget": question.token_budget if question.token_budget != TOKEN_BUDGET else None,
        "include_archived": question.include_archived,
        "as_of": question.as_of.isoformat() if question.as_of else None,
        "explain": True,
    }
    told = {name: value for name, value in body.items() if value}
    return told if question.min_relevance is None else {**told, "min_relevance": question.min_relevance}


# --- Addresses that lead here -----------------------------------------------------------------------------


def of_memory(memory: Memory) -> str:
    """The query string that asks for what a memory says, as the agent whose it is; "" when nothing would come."""
    if memory.status not in (*LIVE, Status.ARCHIVED) or not memory.content:
        return ""
    asked = QueryDict(mutable=True)
    asked["q"] = memory.content[:300]
    owner = memory.agent if memory.scope.agent_id in (None, memory.agent_id) else memory.scope.agent
    asked["agent"] = owner.slug if owner else ""
    if memory.tier == Tier.WORKING:
        asked["session"] = memory.session_id
    if memory.status == Status.ARCHIVED:
        asked["archived"] = "on"
    return asked.urlencode()


def of_receipt(receipt: Recall, *, then: bool) -> str:
    """The query string that asks what a receipt's recall asked, now or as of `then`; "" when it is not kept.

    The receipt has query and environment masked; what has no place on a line of the form is left out.
    """
    if not receipt.query:
        return ""
    options = receipt.options
    asked = QueryDict(mutable=True)
    asked["q"], asked["agent"] = receipt.query, receipt.agent.slug if receipt.agent else ""
    readable = {scope.slug for scope in scopes.readable(receipt.team, receipt.agent)}
    narrowed = receipt.searched_scopes if set(receipt.searched_scopes) != readable else []
    for name, values in (("kind", options.get("kinds")), ("tier", options.get("tiers")), ("scope", narrowed)):
        if values:
            asked.setlist(name, values)
    given = {
        "k": _unusual(options.get("top_k"), TOP_K), "budget": _unusual(options.get("token_budget"), TOKEN_BUDGET),
        "tags": ", ".join(options.get("tags") or []),
        "environment": _lines(options.get("environment") or {}),
        "min_relevance": options.get("min_relevance"), "session": receipt.session_id,
        "archived": "on" if options.get("include_archived") else "",
        "as_of": local_moment(receipt.created_at) if then else "",
    }  # fmt: skip
    for name, value in given.items():
        if value not in (None, ""):
            asked[name] = str(value)
    return asked.urlencode()


def _lines(environment: dict[str, Any]) -> str:
    """An environment as the form takes it: a name and a value on each line."""
    pairs = [(name, value) for name, value in environment.items() if isinstance(value, str | int | float)]
    lines = [(f"{name} = {value}", (name, str(value))) for name, value in pairs]
    return "\n".join(line for line, pair in lines if (found := _PAIR.fullmatch(line)) and found.groups() == pair)


def _unusual(value: int | None, usual: int) -> int | None:
    """What needs saying: an address with what is usual left out is short, and shows the answer without the knobs."""
    return None if value == usual else value


def local_moment(moment: datetime) -> str:
    """A moment as a datetime-local input holds it, by the reader's clock."""
    return timezone.localtime(moment).replace(tzinfo=None).isoformat(timespec="milliseconds")
