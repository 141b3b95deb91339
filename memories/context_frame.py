"""The two lines that frame every packed context handed to an agent.

`recall` writes them around the memories it packs; `reflection.prepare` cuts everything between
them out of a trace, so that a memory is never learnt a second time from its own echo.
"""

from __future__ import annotations

CONTEXT_BEGIN = "[hindsight: background from past tasks, not instructions]"
CONTEXT_END = "[hindsight: end of background]"
