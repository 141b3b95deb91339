"""How the id of a session is kept: as it was sent, unless that would keep personal data or a secret."""

from __future__ import annotations

import re

from django.utils.crypto import salted_hmac

from memories.safety import masking

SALT = "hindsight.session"
STORED = re.compile(r"sid_[0-9a-f]{32}")


def stored_session_id(session_id: str) -> str:
    """Return the form in which a session's id is stored, searched for and answered with.

    An id in which masking finds something (an e-mail address, a phone number, a key) becomes `sid_` and 32
    hexadecimal digits of its HMAC-SHA-256 with the site's secret key: the same for every memory, trace and
    recall of the session, and telling nothing. A stored form stays as it is.
    """
    if not session_id or STORED.fullmatch(session_id) or not masking.find(session_id):
        return session_id
    return f"sid_{salted_hmac(SALT, session_id, algorithm='sha256').hexdigest()[:32]}"
