"""Whether two memories cannot both hold as they stand. Pure.

Precision comes before recall: a missed contradiction is found when somebody meets it, a false one costs a
person's time and casts doubt on two good memories. So only what is the same but for one thing counts: the
same subject and attribute with another value, the same sentence with another value, an opposite word or a
negation, the same advice turned round. Different conditions, validity, environment or speaker are no
contradiction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from memories.advice import is_advice
from memories.enums import ConflictReason, Kind
from memories.opposites import are_opposites
from memories.ranking import contradicts as other_environment
from memories.statements import Statement, is_number, sentences, statement, stem
from memories.values import may_have_many, says_one_value, values_differ

NOT_COMPARED = {Kind.TASK}  # an episode tells what happened, and that stays so
LEAST_WORDS = 2  # a sentence with fewer telling words says too little to be contradicted
LEAST_SHARED = 0.4  # of all words of two texts, so that a sentence is not torn out of another context
MOST_CHARS = 500  # of a sentence; what is longer is no single statement
MOST_SENTENCES = 6  # of each text that are laid beside each other
PIVOTS = ("before", "after", "over", "than", "先")

_ABOUT_MEMORY = re.compile(
    r"\b(?:ignor|disregard|forget|supersed|overrid|replac|discard|outdat)\w*\b.{0,40}\b(?:memor|earlier|previous|prior|above"
    r"|instruction|all other|anything)"
    r"|(?:忽略|无视|忘记|取代|覆盖|作废).{0,12}(?:记忆|之前|以前|先前|指令)",
    re.IGNORECASE,
)
_PREAMBLE = re.compile(
    r"^\W*(?:[^:：.]{0,60}\b(?:memor|earlier|previous|prior|trust|verified)[^:：.]{0,40}"
    r"|(?:important |policy |system )?"
    r"(?:update|correction|correct|note|notice|important|system|attention|fyi|new|warning)"
    r"|(?:重要|注意|更新|更正|系统|通知|最新)[^:：]{0,6})[:：]\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Claim:
    """What is compared of a memory. Its text is taken apart at the first look."""

    content: str
    kind: str
    structure: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    actor: str = ""

    @cached_property
    def told(self) -> Told:
        """The content taken apart."""
        return told(self.content)


@dataclass(frozen=True, slots=True)
class Told:
    """What a text says: its first statements, and all their telling words."""

    statements: tuple[Statement, ...]
    words: frozenset[str]


def told(text: str) -> Told:
    """Take a text apart."""
    parts = _statements(text)
    return Told(tuple(parts), frozenset(word for part in parts for word in (*part.words, *part.condition)))


def contradiction(a: Claim, b: Claim) -> str:
    """Return the `ConflictReason` for which `a` and `b` contradict each other, or "". Symmetric."""
    if a.kind in NOT_COMPARED or b.kind in NOT_COMPARED or (a.actor and b.actor and a.actor != b.actor):
        return ""
    if not _overlap(a, b) or other_environment(a.environment, b.environment):
        return ""
    if a.kind == b.kind and a.structure and b.structure:
        verdict = _by_structure(a, b)
        if verdict is not None:
            return verdict
    return _by_text(a, b)


def _overlap(a: Claim, b: Claim) -> bool:
    """Whether there is a moment at which both claim to hold; without dates there is."""
    return not (
        (a.valid_until and b.valid_from and a.valid_until <= b.valid_from)
        or (b.valid_until and a.valid_from and b.valid_until <= a.valid_from)
    )


def _by_structure(a: Claim, b: Claim) -> str | None:
    """The verdict of the structures; None when they do not say and the texts have to."""
    if a.kind in (Kind.FACT, Kind.RELATION):
        return _of_triples(_triple(a), _triple(b))
    if a.kind == Kind.PREFERENCE:
        if _differ(a.structure.get("holder"), b.structure.get("holder")):
            return ""
        wishes = (told(str(each.structure.get("preference", ""))) for each in (a, b))
        return _of_texts(*wishes) or None
    first, second = a.structure, b.structure
    if _differ(_task_type(first), _task_type(second)) or _apart(first.get("applies_when"), second.get("applies_when")):
        return ""
    return None


def _triple(claim: Claim) -> tuple[str, str, str]:
    attribute = "relation" if claim.kind == Kind.RELATION else "predicate"
    return tuple(str(claim.structure.get(name) or "") for name in ("subject", attribute, "object"))  # type: ignore[return-value]


def _of_triples(a: tuple[str, str, str], b: tuple[str, str, str]) -> str | None:
    if not all(a) or not all(b):
        return None
    if _differ(a[0], b[0]):
        return ""
    first, second = statement(a[1]), statement(b[1])
    if first.words != second.words:
        return None
    same_object = not values_differ(a[2], b[2])
    if first.denied != second.denied:
        return ConflictReason.NEGATED if same_object and _fold(a[2]) == _fold(b[2]) else ""
    if same_object or may_have_many(a[1], a[2], b[2]):
        return ""
    return ConflictReason.OTHER_VALUE


def _differ(a: Any, b: Any) -> bool:
    return bool(a) and bool(b) and _fold(a) != _fold(b)


def _fold(text: Any) -> tuple[str, ...]:
    return statement(str(text)).words or (str(text).strip().casefold(),)


def _task_type(structure: Mapping[str, Any]) -> Any:
    situation = structure.get("situation")
    return situation.get("task_type") if isinstance(situation, Mapping) else None


def _apart(a: Any, b: Any) -> bool:
    """Whether two lessons say that they apply in different situations."""
    return bool(a) and bool(b) and _shared(set(statement(str(a)).words), set(statement(str(b)).words)) < 0.5


def _by_text(a: Claim, b: Claim) -> str:
    reason = _of_texts(a.told, b.told)
    if not reason:
        return ""
    speaks_of_doing = Kind.EXPERIENCE in (a.kind, b.kind) or is_advice(a.content) or is_advice(b.content)
    turned_round = reason in (ConflictReason.NEGATED, ConflictReason.OPPOSITE)
    return ConflictReason.OPPOSITE_ADVICE if turned_round and speaks_of_doing else reason


def _of_texts(a: Told, b: Told) -> str:
    if _shared(a.words, b.words) < LEAST_SHARED:
        return ""
    for left in a.statements:
        for right in b.statements:
            if reason := _of_statements(left, right):
                return reason
    return ""


def _statements(text: str) -> list[Statement]:
    """What a text says, without what it says about memories: "Ignore earlier memories: …", "Update: …"."""
    short = [sentence for sentence in sentences(text) if len(sentence) <= MOST_CHARS]
    bare = [_PREAMBLE.sub("", sentence) for sentence in short]
    told = [sentence for sentence in bare if sentence.strip() and not _ABOUT_MEMORY.search(sentence)]
    return [statement(sentence) for sentence in told[:MOST_SENTENCES]]


def _shared(a: Set[str], b: Set[str]) -> float:
    """The share of the words of both that stand in either, 0..1."""
    both = len(a & b)
    return both / (len(a) + len(b) - both) if a and b else 0.0


def _of_statements(a: Statement, b: Statement) -> str:
    if min(_weight(a.words), _weight(b.words)) < LEAST_WORDS or a.condition != b.condition:
        return ""
    if a.words == b.words:
        return ConflictReason.NEGATED if a.denied != b.denied else ""
    if a.denied != b.denied:
        return ""
    if _turned_round(a.words, b.words):
        return ConflictReason.OPPOSITE
    place = _one_place(a.words, b.words, len(a.condition))
    if place is None:
        return ""
    before, left, right, after = place
    if are_opposites(left, right, before):
        return ConflictReason.OPPOSITE
    return ConflictReason.OTHER_VALUE if says_one_value(before, left, right, after, a.spoken) else ""


def _weight(words: tuple[str, ...]) -> float:
    return sum(1 if word.isascii() else 0.5 for word in words)


Place = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _one_place(a: tuple[str, ...], b: tuple[str, ...], more: int) -> Place | None:
    """What stands before, in `a`, in `b`, and after the only place at which they differ; both have words there.

    `more` counts the words of the condition that the two share.
    """
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    left, right = a[start : len(a) - end], b[start : len(b) - end]
    if set(left) & set(right):
        return None  # something in between is the same: that is two places
    if not left or not right or max(_weight(left), _weight(right)) > 3:
        return None
    if len(a) - len(left) + more < LEAST_WORDS and not (is_number(left[0]) and len(a) > 1):
        return None
    return a[:start], left, right, a[len(a) - end :]


def _turned_round(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Whether what stands on both sides of a word of order was swapped: A before B, B before A."""
    if sorted(a) != sorted(b):
        return False
    for pivot in PIVOTS:
        word = stem(pivot)
        if a.count(word) != 1 or b.count(word) != 1:
            continue
        if pivot == "先":
            return _swapped_halves(a, b, "再") or _swapped_halves(a, b, "后")
        return _swapped_halves(a, b, word)
    return False


def _swapped_halves(a: tuple[str, ...], b: tuple[str, ...], pivot: str) -> bool:
    if a.count(pivot) != 1 or b.count(pivot) != 1:
        return False
    shared = 0
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    for start in range(shared + 1):
        i, j = a.index(pivot), b.index(pivot)
        if start > min(i, j):
            break
        left = (a[start:i], a[i + 1 :])
        right = (b[start:j], b[j + 1 :])
        if left[0] and left[0] == right[1] and left[1] == right[0]:
            return True
        # 先运行A再运行B: the verb stands on both sides
        verb = a[:start][-len(left[1]) :]
        same_verb = bool(verb) and left[1][: len(verb)] == verb and right[1][: len(verb)] == verb
        if same_verb and left[0] and left[0] == right[1][len(verb) :] and right[0] == left[1][len(verb) :]:
            return True
    return False
