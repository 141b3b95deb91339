"""What pages say of mails."""

from __future__ import annotations

from typing import Any

from django import template

from hindsight_site.accounts import mailing, permissions

register = template.Library()


@register.simple_tag(takes_context=True)
def where_mails_go_instead(context: dict[str, Any]) -> str:
    """Where a mail went that was not sent; how to set mails up only for those who manage the team."""
    membership = getattr(context.get("request"), "membership", None)
    manages = membership is not None and permissions.can(membership, permissions.MANAGE)
    return mailing.where_instead(for_operator=manages)
