"""Metrics as lines of Prometheus' text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Labels = tuple[tuple[str, str], ...]

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class Metric:
    """A gauge: its name, what it says in one line, and a value for each set of labels."""

    name: str
    says: str
    values: Mapping[Labels, float]


def one(name: str, says: str, value: float) -> Metric:
    """A metric without labels."""
    return Metric(name, says, {(): value})


def by(name: str, says: str, label: str, values: Mapping[str, float]) -> Metric:
    """A metric with one label."""
    return Metric(name, says, {((label, value),): number for value, number in values.items()})


def lines(metrics: Iterable[Metric]) -> str:
    """The whole text, ending with a line feed. Labels keep their order, values are sorted by them."""
    found: list[str] = []
    for metric in metrics:
        found += [f"# HELP {metric.name} {metric.says}", f"# TYPE {metric.name} gauge"]
        for labels, value in sorted(metric.values.items()):
            named = ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in labels)
            found.append(f"{metric.name}{{{named}}} {value:.15g}" if named else f"{metric.name} {value:.15g}")
    return "".join(f"{line}\n" for line in found)
