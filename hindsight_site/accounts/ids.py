"""Public ids: UUIDv7, so that rows created together lie together in every index."""

import uuid

from uuid6 import uuid7


def new_id() -> uuid.UUID:
    """Return a new time-ordered UUID (RFC 9562, version 7) as a standard `uuid.UUID`."""
    return uuid.UUID(int=uuid7().int)
