"""What is raised for an item that is not of the format it was sent as."""

from __future__ import annotations


class NotThisFormat(ValueError):
    """The item at `index` is off, in its `field` ("" for the whole of it); the message says how."""

    def __init__(self, index: int, field: str, message: str) -> None:
        super().__init__(message)
        self.index, self.field, self.message = index, field, message
