"""The one error of this package."""

from __future__ import annotations


class EmbeddedDatabaseError(RuntimeError):
    """The embedded database cannot do what was asked; its text is one line that says what to do."""
