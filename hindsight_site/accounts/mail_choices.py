"""Which mails a person gets unasked, and the signed links that end one kind without logging in."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core import signing
from django.db import transaction
from django.urls import reverse

from hindsight_site.accounts.enums import MailKind
from hindsight_site.accounts.models import User
from hindsight_site.refusals import NotFound

_SALT = "hindsight.unsubscribe"


@dataclass(frozen=True, slots=True)
class Unsubscription:
    """Whom a link speaks of, and which mails."""

    person: User
    kind: MailKind


def wants(person: User, kind: str) -> bool:
    """Whether a person gets mails of this kind: active, and not switched off by them."""
    return person.is_active and kind not in person.mails_off


def reachable(people: Collection[User]) -> dict[int, str]:
    """Return person → the address to mail: their own where they have confirmed it. Others are left out."""
    rows = EmailAddress.objects.filter(user__in=people, verified=True).values_list("user_id", "email")
    confirmed = {(user_id, email.lower()) for user_id, email in rows}
    return {one.pk: one.email for one in people if (one.pk, one.email.lower()) in confirmed}


@transaction.atomic
def choose(*, person: User, kinds: Collection[str]) -> User:
    """Let a person be mailed these kinds and no others. Names that are no kind are left out."""
    person.mails_off = sorted(set(MailKind.values) - set(kinds))
    person.save(update_fields=["mails_off"])
    return person


@transaction.atomic
def switch_off(*, person: User, kind: str) -> User:
    """End one kind of mail. Doing it twice is fine; two at once end both."""
    standing = User.objects.select_for_update().get(pk=person.pk)
    return choose(person=standing, kinds=set(MailKind.values) - {*standing.mails_off, kind})


def link(person: User, kind: str) -> str:
    """The address that ends this kind of mail for this person. It holds as long as the site's secret key."""
    return settings.SITE_URL + reverse("unsubscribe", args=[signing.dumps([person.pk, str(kind)], salt=_SALT)])


def find(token: str) -> Unsubscription:
    """Read a link. Raises `NotFound` for one that is forged, or of a person or a kind that is no more."""
    try:
        person_id, kind = signing.loads(token, salt=_SALT)
        return Unsubscription(User.objects.get(pk=person_id), MailKind(kind))
    except (signing.BadSignature, User.DoesNotExist, ValueError, TypeError):
        raise NotFound("This link does not work. Choose your mails on your account page instead.") from None
