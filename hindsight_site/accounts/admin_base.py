"""What the admin's lists share: one team at a time, read-only, searched and counted through indexes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, cast

from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db import models
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

from hindsight_site.accounts import audit
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team, User
from hindsight_site.accounts.staff import chosen_team
from hindsight_site.accounts.tenancy import enter_team, team_transaction
from hindsight_site.refusals import Refused

MOST_COUNTED = 10_000  # rows of a list; beyond, a count would read the whole table


class CappedPaginator(Paginator):
    """Counts no further than `MOST_COUNTED`: who looks for more narrows the list."""

    @cached_property
    def count(self) -> int:
        rows = cast("QuerySet[Model]", self.object_list)
        return rows.order_by()[:MOST_COUNTED].count()


class ReadOnly(admin.ModelAdmin):
    """Rows that only the product's actions write: staff look, and nothing changes behind the audit.

    `search_fields` are matched whole (ids, exact words) or, with `__startswith`, by their beginning: what
    an index can find. A list shows the team that staff work in, whatever the database's role may see.
    """

    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # a count for each choice of each filter
    list_per_page = 50
    list_max_show_all = 200

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        if not any(field.name == "team" for field in self.model._meta.fields):
            return rows
        team = chosen_team(request)
        return rows.filter(team_id=team.pk) if team else rows.none()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        return queryset.filter(matching(self.model, self.get_search_fields(request), term)), False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_curate_permission(self, request: HttpRequest) -> bool:
        """Whether these staff may act on the rows, through the product's own actions."""
        meta = self.model._meta
        return request.user.has_perm(f"{meta.app_label}.change_{meta.model_name}")


def matching(model: type[Model], fields: Sequence[str], term: str) -> Q:
    """Return the condition of a search for `term`; one that no row meets when no field can hold it."""
    ident, found = _uuid(term), Q(pk__in=[])
    for name in fields:
        if _is_id(model, name.removesuffix("__startswith")):
            found |= Q(**{name: ident}) if ident else Q()
        else:
            found |= Q(**{name: term})
    return found


def _is_id(model: type[Model], name: str) -> bool:
    field = model._meta.pk if name == "pk" else model._meta.get_field(name)
    target = getattr(field, "target_field", field)
    return isinstance(target, models.UUIDField)


def _uuid(term: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(term)
    except ValueError:
        return None


def staff_action(
    name: str, words: str, act: Callable[[Team, Actor, Any], object], team_of: Callable[[Any], Team] | None = None
) -> Callable[..., None]:
    """Return an admin action that calls `act(team, by, row)` for each chosen row, inside the row's own team.

    A refusal is shown beside its row and stops none of the others.
    """

    @admin.action(description=words, permissions=["curate"])
    def apply(modeladmin: admin.ModelAdmin, request: HttpRequest, chosen: QuerySet[Any]) -> None:
        by, done = audit.person(cast(User, request.user)), 0
        for row in chosen:
            team = team_of(row) if team_of else row.team
            try:
                with team_transaction(team):
                    act(team, by, row)
                done += 1
            except Refused as refusal:
                modeladmin.message_user(request, f"{row}: {refusal}", messages.WARNING)
        if working_in := chosen_team(request):
            enter_team(working_in)
        modeladmin.message_user(request, f"{words}: {done} done.")

    apply.__name__ = name
    return apply


class Bounded(admin.SimpleListFilter):
    """A filter over the few values that a column has, found without reading the table. Subclasses list them."""

    column = ""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset.filter(**{self.column: value}) if value else queryset
