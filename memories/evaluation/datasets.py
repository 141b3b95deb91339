"""Data sets as haystacks: memories in their places, and questions with what answers them. Pure readers.

The public sets are read from a folder outside the repository (see `DATA_FOLDER`); none of their text is
kept here. Formats are those of that folder's README.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MOST_CHARS = 8_000  # of one memory, the default limit of the service


@dataclass(frozen=True, slots=True)
class Item:
    """One memory to be stored: `key` is the data set's own id."""

    key: str
    content: str
    actor: str = ""
    session_id: str = ""
    sequence: int | None = None
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """One question. `gold` are keys of items, `gold_sessions` session ids; both empty when unanswerable."""

    key: str
    text: str
    category: str
    gold: frozenset[str] = frozenset()
    gold_sessions: frozenset[str] = frozenset()
    answerable: bool = True


@dataclass(frozen=True, slots=True)
class Haystack:
    """One scope: what is in it and what is asked of it."""

    name: str
    items: tuple[Item, ...]
    questions: tuple[Asked, ...] = field(default=())


def locomo(folder: Path) -> Iterator[Haystack]:
    """Turns of long conversations; category 5 asks the wrong speaker and has no answer."""
    for conversation in _json(folder / "locomo.json.gz")["conversations"]:
        items = tuple(
            Item(
                key=turn["dia_id"],
                content=turn["text"] + (f" [{turn['caption']}]" if turn.get("caption") else ""),
                actor=turn["speaker"],
                session_id=str(session["session"]),
                sequence=number,
                occurred_at=_time(session["datetime"]),
            )
            for session in conversation["sessions"]
            for number, turn in enumerate(session["turns"])
        )
        sessions = {item.key: item.session_id for item in items}
        yield Haystack(
            conversation["conversation_id"],
            items,
            tuple(_locomo_question(question, sessions) for question in conversation["questions"]),
        )


def _locomo_question(question: dict[str, Any], sessions: dict[str, str]) -> Asked:
    answerable = question["category"] != 5
    evidence = (question.get("audit") or {}).get("correct_evidence") or question["evidence"]
    gold = frozenset(key for key in evidence if key in sessions) if answerable else frozenset()
    return Asked(
        key=question["qid"],
        text=question["question"],
        category=str(question["category"]),
        gold=gold,
        gold_sessions=frozenset(sessions[key] for key in gold),
        answerable=answerable,
    )


def longmemeval(folder: Path) -> Iterator[Haystack]:
    """One question over about 48 sessions of chat with an assistant; gold are sessions."""
    for row in _jsonl(folder / "longmemeval_s_subset.jsonl.gz"):
        items = tuple(
            Item(
                key=f"{place}:{number}",
                content=turn["content"],
                actor=turn["role"],
                session_id=str(place),
                sequence=number,
                occurred_at=_time(session["datetime"]),
            )
            for place, session in enumerate(row["sessions"])
            for number, turn in enumerate(session["turns"])
        )
        answer_ids = set(row["answer_session_ids"])
        if not answer_ids and not row["question_id"].endswith("_abs"):
            answer_ids = set(row.get("answer_session_ids_original") or ())
        gold = {str(i) for i, session in enumerate(row["sessions"]) if session["session_id"] in answer_ids}
        answerable = not row["is_abstention"]
        asked = Asked(
            key=row["question_id"],
            text=row["question"],
            category=row["question_type"],
            gold_sessions=frozenset(gold) if answerable else frozenset(),
            answerable=answerable,
        )
        yield Haystack(row["question_id"], items, (asked,))


def beam(folder: Path) -> Iterator[Haystack]:
    """Chats of about 100,000 tokens, ten abilities; abstention has no answer."""
    for row in _jsonl(folder / "beam_100k.jsonl.gz"):
        items: list[Item] = []
        counts: dict[Any, int] = {}
        day = ""
        for turn in row["turns"]:
            number = counts.get(turn["session"], 0)
            counts[turn["session"]] = number + 1
            day = turn.get("date") or day
            items.append(
                Item(
                    key=str(turn["id"]),
                    content=turn["content"],
                    actor=turn["role"],
                    session_id=str(turn["session"]),
                    sequence=number,
                    occurred_at=_time(day),
                )
            )
        questions = tuple(
            Asked(
                key=question["qid"],
                text=question["question"],
                category=question["ability"],
                gold=frozenset(str(key) for key in question["evidence"]),
                answerable=question["ability"] != "abstention",
            )
            for question in row["questions"]
        )
        yield Haystack(f"beam-{row['conversation_id']}", tuple(items), questions)


def memorybank(folder: Path, language: str) -> Iterator[Haystack]:
    """Days of small talk with a companion; evidence is judged for Chinese only."""
    for row in _jsonl(folder / "memorybank_zh_en.jsonl.gz"):
        if row["lang"] != language:
            continue
        items: list[Item] = []
        counts: dict[str, int] = {}
        for turn in row["turns"]:
            number = counts.get(turn["date"], 0)
            counts[turn["date"]] = number + 1
            items.append(
                Item(
                    key=turn["turn_id"],
                    content=f"{turn['query']}\n{turn['response']}",
                    session_id=turn["date"],
                    sequence=number,
                    occurred_at=_time(turn["date"]),
                )
            )
        questions = tuple(
            Asked(question["qid"], question["question"], language, frozenset(question["evidence"] or ()))
            for question in row["questions"]
        )
        yield Haystack(row["user_id"], tuple(items), questions)


def _json(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def _jsonl(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _time(text: str) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
