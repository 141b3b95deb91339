"""Words too common to tell one memory from another, in English and Chinese.

They are left out when writing and when asking, so that they cost neither space nor rank. Question
words are among them: "what", "when" and "什么" are in most questions and in few answers.
"""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent

STOP_WORDS = frozenset(
    word
    for language in ("en", "zh")
    for word in (_HERE / f"stopwords_{language}.txt").read_text(encoding="utf-8").split()
)
