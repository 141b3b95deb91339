"""What pages say of mails."""

from __future__ import annotations

from django import template

from hindsight_site.accounts import mailing

register = template.Library()
register.simple_tag(mailing.where_instead, name="where_mails_go_instead")
