"""What repeats across episodes, found without a model. Pure and deterministic.

An error that a tool gave in two or more independent traces, and that no lesson explains yet, becomes one lesson
with its count. Passing failures never do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memories.enums import FailureClass, Kind, Tier
from reflection.distill.blame import GROUNDS
from reflection.distill.failures import classify
from reflection.distill.wording import filled, shorten
from reflection.forms import Candidate, Distilled, Quote

INDEPENDENT = 2  # traces that must show the same
ERROR_CHARS = 120  # of an error told in a lesson
_PLACE = re.compile(r"^(?:step \d+ \((?P<en>[^)]+)\)|step \d+, (?P<call>[\w.-]+)|第 \d+ 步（(?P<zh>[^）]+)）)")
_VALUE = re.compile(r"<\w+>|\b[0-9a-f]{8,}\b|\d+(?:[.,:]\d+)*|[“\"'‘`][^”\"'’`]{0,80}[”\"'’`]")
_PASSING = (FailureClass.TRANSIENT, FailureClass.ENVIRONMENT, FailureClass.IMPOSSIBLE)  # never a lasting rule
_CJK = re.compile(r"[\u3400-\u9fff]")
# Two grounds of blame end in the error itself; the others are only supposed.
_SAID = tuple(f"{phrase}: " for ground in ("error", "outlived") for phrase in GROUNDS[ground])
_SUPPOSED = tuple(phrase for pair in GROUNDS.values() for phrase in pair)


@dataclass(frozen=True, slots=True)
class Episode:
    """One memory that is looked at. `number` is its step in the look; `traces` are the independent ones it rests on."""

    number: int
    kind: str  # memories.enums.Kind
    content: str
    structure: Mapping[str, Any]
    traces: frozenset[str]


@dataclass(frozen=True, slots=True)
class Failure:
    """A tool's error in one episode, as it was told there."""

    episode: Episode
    tool: str
    error: str


def distil(episodes: Sequence[Episode]) -> Distilled:
    """Return one lesson for every error that repeats, the most frequent first."""
    known = [_plain(episode.content) for episode in episodes if episode.kind == Kind.EXPERIENCE]
    groups: dict[tuple[str, str], list[Failure]] = defaultdict(list)
    for failure in (failure for episode in episodes for failure in failures(episode)):
        groups[failure.tool, signature(failure.error)].append(failure)
    repeated = [group for group in groups.values() if len(_traces(group)) >= INDEPENDENT]
    repeated.sort(key=lambda group: (-len(_traces(group)), group[0].tool, group[0].error))
    lessons = [_lesson(group, len(episodes)) for group in repeated if not _explained(group, known)]
    return Distilled(candidates=tuple(lessons), distiller="rules")


def failures(episode: Episode) -> Iterator[Failure]:
    """Yield the errors that an episode tells of a named tool; what was only supposed, or passes, is left out."""
    for step in episode.structure.get("failure_steps", []) if episode.kind == Kind.TASK else []:
        place, reason = _PLACE.match(step.get("step", "")), step.get("reason", "")
        for said in _SAID:
            reason = reason.rpartition(said)[2]
        if place is None or not reason or any(phrase in reason for phrase in _SUPPOSED):
            continue
        if classify(reason) not in _PASSING:
            yield Failure(episode, next(filter(None, place.groups())), reason.rstrip(".。"))


def signature(text: str) -> str:
    """Return an error without what varies from one call to the next: numbers, ids, quoted values, spaces."""
    return " ".join(_VALUE.sub(" ", text.lower()).split())


def _traces(group: Sequence[Failure]) -> frozenset[str]:
    return frozenset(trace for failure in group for trace in failure.episode.traces)


def _explained(group: Sequence[Failure], lessons: Sequence[str]) -> bool:
    """Whether a lesson names the tool and the error's longest fixed words: its own support counts the repeats."""
    tool, fixed = _plain(group[0].tool), max(map(_plain, _VALUE.split(group[0].error)), key=len)
    return any(tool in lesson and fixed in lesson for lesson in lessons)


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _lesson(group: Sequence[Failure], looked_at: int) -> Candidate:
    tool, times = group[0].tool, len(_traces(group))
    error = shorten(group[0].error, ERROR_CHARS)
    zh = len(_CJK.findall(group[0].episode.content)) > 10
    content = (
        f"{tool} 在 {times} 个独立任务中都报错“{error}”，且都没有找到解决办法：调用前先核实它要求的条件。"
        if zh
        else f"{tool} answered “{error}” in {times} separate tasks, and none found a way past it: "
        "settle what it asks for before calling it."
    )
    structure = {
        "situation": {"features": [tool, error], "text": f"{tool}: {error}"},
        "outcome": {"success": False, "metrics": {"tasks": times, "episodes_looked_at": looked_at}},
        "lesson": content,
        "applies_when": f"{tool}：{error}" if zh else f"{tool} fails with “{error}”",
        "failure_class": FailureClass.PERMANENT.value,
    }
    return Candidate(
        kind=Kind.EXPERIENCE.value,
        tier=Tier.SEMANTIC.value,
        content=content,
        structure=filled(structure),
        confidence=min(0.35 + 0.05 * times, 0.6),
        quotes=tuple(dict.fromkeys(_quote(failure) for failure in group)),
        failure_class=FailureClass.PERMANENT.value,
        tags=(tool[:60],),
    )


def _quote(failure: Failure) -> Quote:
    """Quote the error where the episode tells it, or else the episode's first words."""
    text = failure.episode.content
    for words in (failure.error, failure.error[:60], failure.tool):
        start = text.find(words)
        if start >= 0:
            return Quote(failure.episode.number, start, start + len(words), words)
    return Quote(failure.episode.number, 0, min(len(text), 80), text[:80])
