"""Measure how good and how fast it is: recall, masking, screening, the rules distiller, the detection of conflicts.

    manage.py evaluate latency --sizes 1000 10000
    manage.py evaluate recall --data ../shared/data/dev --sets locomo beam --json figures.json
    manage.py evaluate masking

It stands in this app because it measures both: `memories` must not import `reflection`.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from memories.embeddings import get_embedder, warm_up
from memories.evaluation import conflicts, latency, masking, report, runs, screening, surroundings
from memories.evaluation.report import Figure
from memories.evaluation.sets import SETS
from memories.search.calibration import calibration_of
from reflection.evaluation import contradictions, recording, rules


@dataclass(frozen=True, slots=True)
class Other:
    """A measurement of one file: figures, and how they are shown."""

    file: str
    evaluate: Callable[[Path], dict[str, Any]]
    table: Callable[[dict[str, Any]], str]


OTHERS = {
    "masking": Other("pii.jsonl", masking.evaluate, masking.table),
    "screening": Other("injection.jsonl", screening.evaluate, screening.table),
    "rules": Other("agent_traces.jsonl.gz", rules.evaluate, lambda figures: json.dumps(figures, indent=1)),
}


class Command(BaseCommand):
    help = "Measure the quality of recall, masking, screening, the rules distiller or the detection of conflicts."
    # It measures in tables of its own team: an empty database is told to be migrated before it fails.
    requires_migrations_checks = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["recall", "latency", "conflicts", *OTHERS], nargs="?", default="latency")
        parser.add_argument(
            "--data",
            type=Path,
            default=settings.BASE_DIR.parent / "shared" / "data" / "dev",
            help="the folder of the public data sets",
        )
        parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="recall: only these sets")
        parser.add_argument("--haystacks", type=int, help="recall: only the first so many of each set")
        parser.add_argument(
            "--sizes", nargs="+", type=int, default=[1_000, 10_000], help="latency: memories in a team; 100000 too"
        )
        parser.add_argument("--json", type=Path, help="write the figures to this file too")

    def handle(self, what: str, data: Path, **options: Any) -> None:
        started = time.monotonic()
        head: dict[str, Any] = {
            "machine": surroundings.machine(),
            "commit": surroundings.commit(settings.BASE_DIR),
            "model": get_embedder().model_id,
        }
        for name, value in head.items():
            self.stdout.write(f"{name}: {value}")
        warm_up()
        if what == "recall":
            measured = self._recall(data, options["sets"], options["haystacks"])
        elif what == "latency":
            measured = self._latency(options["sizes"])
        elif what == "conflicts":
            measured = self._conflicts(data)
        else:
            measured = self._other(what, data)
        if options["json"]:
            options["json"].write_text(json.dumps(head | measured, indent=1, default=str), encoding="utf-8")
        self.stdout.write(f"Measured {len(measured)} in {time.monotonic() - started:.0f} s.")

    def _recall(self, data: Path, names: Sequence[str], haystacks: int | None) -> dict[str, Any]:
        floor = calibration_of(get_embedder().model_id).floor
        measured: dict[str, Any] = {}
        for name in names:
            chosen = SETS[name]
            path = chosen.path(data)
            if not path.exists():
                self.stderr.write(f"{name}: {path} is missing, left out.")
                continue
            run = runs.run(list(islice(chosen.read(data), haystacks)), progress=self._progress(name))
            rows = report.figures(name, run, floor)
            checksum = surroundings.checksum([path])
            self.stdout.write(f"\n{name} (data {checksum}, floor {floor})")
            self._table(rows)
            measured[name] = {"checksum": checksum, "figures": {row.measure: row.value for row in rows}}
        if not measured:
            raise CommandError("None of the data sets is there; say where they are with --data.")
        return measured

    def _conflicts(self, data: Path) -> dict[str, Any]:
        """Our own pairs need no data; the unlabelled lessons are added where they are there."""
        figures = contradictions.measure(data)
        self.stdout.write(conflicts.table(figures))
        return {"conflicts": {"checksum": surroundings.checksum([conflicts.OWN, conflicts.HELD]), "figures": figures}}

    def _latency(self, sizes: Sequence[int]) -> dict[str, Any]:
        rows = [*latency.measure(sizes, progress=self._progress("latency")), recording.measure()]
        self._table(rows)
        return {"latency": {row.measure: row.value for row in rows}}

    def _other(self, what: str, data: Path) -> dict[str, Any]:
        path = data / OTHERS[what].file
        if not path.exists():
            raise CommandError(f"{path} is missing; say where the data sets are with --data.")
        self.stdout.write(f"data: {surroundings.checksum([path])}")
        figures = OTHERS[what].evaluate(path)
        self.stdout.write(OTHERS[what].table(figures))
        return {what: {"checksum": surroundings.checksum([path]), "figures": figures}}

    def _table(self, rows: Sequence[Figure]) -> None:
        for row in rows:
            value = "–" if row.value is None else f"{row.value:.3f}"
            bound = "at most" if row.at_most else "must"
            agreed = "" if row.must is None else f"{bound} {row.must:.2f}"
            agreed += "" if row.aim is None else f", aim {row.aim:.2f}"
            mark = {None: "", True: "ok", False: "MISSED"}[row.met]
            self.stdout.write(f"  {row.measure:<40} {value:>10}  n={row.n:<6} {agreed:<24} {mark}".rstrip())

    def _progress(self, name: str) -> runs.Progress:
        """A line that is rewritten on a terminal, with an estimate; nothing when the output is a file."""
        began: dict[str, float] = {}

        def show(doing: str, done: int, total: int) -> None:
            if not sys.stderr.isatty():
                return
            began.setdefault(doing, time.monotonic())
            spent = time.monotonic() - began[doing]
            left = spent / done * (total - done)
            self.stderr.write(f"\r{name}: {doing} {done}/{total}, {left:.0f} s left   ", ending="")
            if done == total:
                self.stderr.write("\r" + " " * 60 + "\r", ending="")

        return show
