"""The sets by name: how each is read, and the files it is read from. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from . import datasets, own
from .datasets import Haystack

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class DataSet:
    """A set and its file. `read` takes the folder of the public data, which our own sets do not use."""

    read: Callable[[Path], Iterable[Haystack]]
    file: str
    is_own: bool = False

    def path(self, folder: Path) -> Path:
        """Return where the set's file is."""
        return (_HERE if self.is_own else folder) / self.file


SETS: dict[str, DataSet] = {
    "identifiers": DataSet(lambda _: [own.identifiers()], "identifiers.json", is_own=True),
    "paraphrases_zh": DataSet(lambda _: [own.paraphrases()], "paraphrases_zh.json", is_own=True),
    "memorybank_zh": DataSet(lambda at: datasets.memorybank(at, "zh"), "memorybank_zh_en.jsonl.gz"),
    "locomo": DataSet(datasets.locomo, "locomo.json.gz"),
    "beam": DataSet(datasets.beam, "beam_100k.jsonl.gz"),
    "longmemeval": DataSet(datasets.longmemeval, "longmemeval_s_subset.jsonl.gz"),
}
