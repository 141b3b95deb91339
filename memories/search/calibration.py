"""What cosines of each embedding model mean, and where "relevant" begins. Pure.

Chosen on data, and measured again by `manage.py evaluate recall`. "Relevant" is decided against
questions asked of the wrong scope: precision is the share of `no_match` answers that were right, recall
the share of such questions that end in `no_match`, both kinds of questions weighing the same.

The floor of the default model, set by set (share of answerable questions lost, of wrong ones told):
LoCoMo 0.01, 0.79; BEAM 0.02, 0.50; MemoryBank zh 0.02, 0.70, en 0.04, 0.56; of the Chinese pairs that share
no word with their memory 0.08 are lost. A higher floor tells more and loses more of those pairs (0.37 at
0.22). A question about the right scope whose answer is missing there is not told by any floor.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Calibration:
    """How cosines of one model become evidence, and the floors under which nothing is handed out."""

    background: float  # cosine of a question and a memory that have nothing to do with each other
    spread: float | None  # standard deviation of such cosines; None: taken from a sample of the scope
    floor: float  # relevance, with vectors and keywords
    keyword_floor: float  # relevance, when the vectors are missing
    precision: float | None  # of `no_match` at the floor; None: not measured
    recall: float | None


CALIBRATIONS: dict[str, Calibration] = {
    "use-multilingual-v3": Calibration(
        background=0.15, spread=0.09, floor=0.18, keyword_floor=0.12, precision=0.97, recall=0.64
    ),
}
#: For models that nobody has measured here: cosines are counted in deviations from a sample of the scope.
UNKNOWN = Calibration(background=0.3, spread=None, floor=0.18, keyword_floor=0.12, precision=None, recall=None)


def calibration_of(model_id: str) -> Calibration:
    """Return what is known about a model (`name@version`)."""
    return CALIBRATIONS.get(model_id.partition("@")[0], UNKNOWN)
