"""Memory that a process and its forks hold together."""

from __future__ import annotations

import gc


def share() -> None:
    """Call it when all is loaded, before the first fork.

    A fork shares its parent's pages until one of the two writes to them, and the collection of garbage writes to
    every object that it looks at: the first whole one in a fork would copy nearly all that was loaded, 27 MB of a
    queue process. So it is not to look at what is there by now.
    """
    gc.collect()
    gc.freeze()
