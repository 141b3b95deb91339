"""The rules distiller: deterministic, without a model, and modest about what it concludes.

From a trace it makes one episode, at most three lessons (from error → change → success, and from refusals
that state their rule), and whatever the user explicitly asked to be remembered.
"""

from __future__ import annotations

from reflection.distill.episodes import episode
from reflection.distill.lessons import context_of, lessons
from reflection.distill.pairs import find_pairs
from reflection.distill.refusals import warnings
from reflection.distill.remembered import remembered
from reflection.forms import Distilled, TraceForm

LESSONS = 3  # at most, from one trace


def distil(trace: TraceForm) -> Distilled:
    """Return the candidates of `trace`. The same trace always gives the same candidates."""
    findings = find_pairs(trace)
    context = context_of(trace)
    told = episode(trace, findings)
    learnt = (*lessons(context, findings.pairs), *warnings(context, findings))[:LESSONS]
    return Distilled(candidates=(*((told,) if told else ()), *learnt, *remembered(trace)), distiller="rules")
