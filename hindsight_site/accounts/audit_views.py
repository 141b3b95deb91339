"""The page of the audit: who did what, to be narrowed and taken away as CSV."""

from __future__ import annotations

from datetime import timedelta
from itertools import chain
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from hindsight_site import cursors
from hindsight_site.accounts import audit_choices, audit_links, audit_queries, permissions
from hindsight_site.accounts.audit_queries import AuditFilters
from hindsight_site.accounts.enums import ActorKind
from hindsight_site.accounts.models import Team
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.days import beginning_of

NAMES = ("actor", "verb", "kind", "object", "since", "until")


@require_safe
@team_page(permissions.READ_AUDIT)
def audit_page(request: TeamRequest) -> HttpResponse:
    """The team's events, newest first. Both days of a range are included."""
    chosen = chosen_of(request.GET)
    events = audit_queries.found(request.team, filters_of(chosen))
    page = cursors.newest_first(events, request.GET)
    links = audit_links.links_of(request.team, page.rows)
    context = {
        "page": page,
        # The details in pairs: a template would take one called "items" for the method of that name.
        "rows": [
            (event, sorted(event.detail.items()), links.get((event.object_type, event.object_id), ""))
            for event in page.rows
        ],
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "download": urlencode({name: value for name, value in chosen.items() if value}),
        **offered(request.team, chosen),
    }
    return render(request, "accounts/audit.html", context)


@require_safe
@team_page(permissions.READ_AUDIT)
def audit_download(request: TeamRequest) -> StreamingHttpResponse:
    """What the page finds, all of it, as CSV. Times are UTC."""
    lines = audit_queries.lines(request.team, filters_of(chosen_of(request.GET)))
    name = f"audit-{request.team.slug}-{timezone.now():%Y-%m-%d}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)


def offered(team: Team, chosen: dict[str, str]) -> dict[str, Any]:
    """What the selects offer: every verb, kind and actor that this team's events have."""
    acted = audit_choices.actors_of(team)
    people = [(f"{one.kind}:{one.id}", one.label) for one in acted if one.kind == ActorKind.PERSON]
    tokens = [(f"{one.kind}:{one.id}", one.label) for one in acted if one.kind == ActorKind.TOKEN]
    rules = [(f"{ActorKind.SYSTEM}:", "Rules and schedules")]
    actors = [(label, them) for label, them in (("People", people), ("Tokens", tokens), ("Hindsight", rules)) if them]
    verbs, known = audit_choices.verbs_of(team), {value for _, them in actors for value, _ in them}
    return {
        "verbs": verbs,
        "kinds": audit_choices.kinds_of(team),
        "actors": actors,
        # A name that was looked for by hand, or a verb nobody used yet: the form keeps what the address says.
        "other_actor": chosen["actor"] if chosen["actor"] not in known else "",
        "other_verb": chosen["verb"] if chosen["verb"] not in {*verbs, *chain(*verbs.values())} else "",
    }


def chosen_of(query: QueryDict) -> dict[str, str]:
    """The filters as typed. NUL is dropped: PostgreSQL has no text with it, so nothing could match."""
    return {name: query.get(name, "").replace("\x00", "").strip()[:254] for name in NAMES}


def filters_of(chosen: dict[str, str]) -> AuditFilters:
    """Read what was chosen; a day that is none is no filter."""
    until = beginning_of(chosen["until"])
    kind, _, ident = chosen["actor"].partition(":")
    known = kind in ActorKind.values
    return AuditFilters(
        actor=ident if known else chosen["actor"],
        actor_kind=kind if known else "",
        verb=chosen["verb"],
        object_type=chosen["kind"],
        object_id=chosen["object"],
        since=beginning_of(chosen["since"]),
        until=until and until + timedelta(days=1),
    )
