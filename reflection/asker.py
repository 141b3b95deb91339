"""Whether whoever asked for a run may still have it: looked at when the run begins, and again when it writes.

What an agent sends is accepted at once and finished by a worker, perhaps much later. A run carries the token that
it was asked for with, so that taking the token away takes its unfinished runs with it.
"""

from __future__ import annotations

from hindsight_site.accounts import credentials
from hindsight_site.accounts.credentials import BadCredential
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.accounts.models import ApiToken
from hindsight_site.accounts.tenancy import team_transaction
from reflection.lease import Claim
from reflection.models import Reflection

ASKING = frozenset({TokenScope.REFLECT, TokenScope.TRACE_WRITE})  # a trace that ends asks, too


class AskerGone(Exception):
    """The token behind a run does not stand any more; the message says why, in words safe to show."""


def checked(claim: Claim) -> Reflection:
    """Return the run that was claimed. Raises `AskerGone` when it is nobody's any more."""
    with team_transaction(claim.team):
        run = Reflection.objects.of(claim.team).get(pk=claim.row_id)
        check(run)
        return run


def check(reflection: Reflection) -> None:
    """The same for a row, in a transaction of its team. A person or the schedule asks without a token."""
    if reflection.token_id is None:
        return
    tokens = ApiToken.objects.of(reflection.team).select_related("team", "agent")
    token = tokens.get(pk=reflection.token_id)
    try:
        credentials.check_live(token)
    except BadCredential as error:
        raise AskerGone(f"{error} It was what this was asked for with; ask again with another.") from None
    if not ASKING & set(token.scopes):
        raise AskerGone("The token that this was asked for with may send traces and ask for reflections no more.")
