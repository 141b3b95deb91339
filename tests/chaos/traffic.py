"""Callers that go on through a fault as an agent would, and remember what they were told."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

from tests.running_site import Site

PACE = 0.15  # seconds between two writes of one caller
RETRY = 0.3  # seconds before a call that failed is sent again, with its Idempotency-Key
MAY_FAIL = {429, 503, 507}  # answers that say "later"; any other error is a finding


@dataclass(slots=True)
class Ledger:
    """What was sent, and what was acknowledged, each by a text that occurs once."""

    sent: set[str] = field(default_factory=set)
    memories: dict[str, str] = field(default_factory=dict)  # content → id
    traces: dict[str, str] = field(default_factory=dict)  # task → id
    retries: Counter[str] = field(default_factory=Counter)  # by what the failed try was answered
    unexpected: Counter[str] = field(default_factory=Counter)
    recalled_at: list[float] = field(default_factory=list)  # time.monotonic() of each recall that was answered
    written_at: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Traffic:
    """Three callers: one remembers, one records traces, one recalls. `label` tells scenarios apart."""

    site: Site
    label: str
    ledger: Ledger = field(default_factory=Ledger)
    done: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)
    numbers: Any = field(default_factory=itertools.count)

    def start(self) -> None:
        for turn in (self.remember, self.record, self.recall):
            thread = threading.Thread(target=self._go_on, args=(turn,), name=turn.__name__)
            thread.start()
            self.threads.append(thread)

    def stop(self) -> None:
        """End after the call at hand was acknowledged; a caller that is never answered is left behind."""
        self.done.set()
        for thread in self.threads:
            thread.join(timeout=60)

    def remember(self) -> None:
        number = next(self.numbers)
        content = f"Machine {self.label}-{number} keeps its key under flag {number * 7919 % 100_003}."
        answer = self.send("memories", {"kind": "fact", "content": content}, content)
        if answer:
            self.ledger.memories[content] = answer["id"]

    def record(self) -> str | None:
        """Record a trace that will be looked back at. Returns its reflection's id."""
        number = next(self.numbers)
        task = f"Repair machine {self.label}-{number}"
        answer = self.send("traces", {"task": task, "steps": _steps(number), "outcome": "failed"}, task)
        if not answer:
            return None
        self.ledger.traces[task] = answer["id"]
        return answer["reflection"]["id"]

    def recall(self) -> None:
        number = random.randrange(1000)
        answer = self._try("recall", {"query": f"the key of machine {self.label}-{number}"}, {})
        if isinstance(answer, dict):
            self.ledger.recalled_at.append(time.monotonic())

    def send(self, path: str, body: dict[str, Any], mark: str) -> dict[str, Any] | None:
        """Write until it is acknowledged, or until nobody waits for it any more."""
        self.ledger.sent.add(mark)
        given_up_at = time.monotonic() + 300
        while time.monotonic() < given_up_at:
            answer = self._try(path, body, {"Idempotency-Key": mark})
            if isinstance(answer, dict):
                self.ledger.written_at.append(time.monotonic())
                return answer
            if answer not in MAY_FAIL and answer != 0:
                return None
            if self.done.wait(RETRY) and given_up_at > time.monotonic() + 30:
                given_up_at = time.monotonic() + 30
        return None

    def _try(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any] | int:
        """The answer; the status of a refusal; 0 without an answer."""
        try:
            status, answer = self.site.api("POST", path, body, **headers)
        except (OSError, HTTPException, ValueError) as error:
            self.ledger.retries[type(error).__name__] += 1
            return 0
        if status < 300:
            return answer
        if status in MAY_FAIL:
            self.ledger.retries[str(status)] += 1
        else:
            self.ledger.unexpected[f"{path}: {status} {answer}"[:200]] += 1
        return status

    def _go_on(self, turn: Callable[[], object]) -> None:
        while not self.done.wait(PACE):
            turn()


def _steps(number: int) -> list[dict[str, Any]]:
    tool = f"wrench-{number}"
    call = {"role": "assistant", "kind": "tool_call", "tool": tool, "content": "turn"}
    said = {"role": "tool", "kind": "tool_result", "tool": tool}
    return [
        {"role": "user", "content": f"Repair machine {number}."},
        {**call, "arguments": {"bolt": "left", "torque": number}},
        {**said, "is_error": True, "content": f"Error {number}: bolt must be given by its number, got 'left'"},
        {**call, "arguments": {"bolt": number}},
        {**said, "content": f"bolt {number} is tight"},
    ]
