"""Staff curation of teams and people. What changes goes through the actions; history is read-only."""

from __future__ import annotations

from typing import Any

from allauth.account.admin import EmailAddressAdmin
from allauth.account.models import EmailAddress
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.db.models import Q, QuerySet
from django.db.models.functions import Lower
from django.http import HttpRequest

from hindsight_site.accounts import actions, audit_choices, people
from hindsight_site.accounts.admin_base import Bounded, CappedPaginator, ReadOnly, staff_action
from hindsight_site.accounts.models import (
    Agent,
    ApiToken,
    AuditEvent,
    IdempotencyKey,
    Invitation,
    Job,
    JobChunk,
    Membership,
    Team,
    TeamDeletion,
    User,
    Webhook,
    WebhookDelivery,
)
from hindsight_site.accounts.staff import chosen_team

WHEN = admin.DateFieldListFilter  # today, the past 7 days, this month, this year
MOST_PEOPLE = 50  # whose memberships a search looks through


def people_found(people_: QuerySet[User], term: str) -> QuerySet[User]:
    """Those whose address begins with `term`, or is it in another case."""
    return people_.alias(lowered=Lower("email")).filter(Q(email__startswith=term) | Q(lowered=term.lower()))


@admin.register(User)
class PeopleAdmin(UserAdmin):
    """People are switched off, not deleted: what they decided keeps their name."""

    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    ordering = ("email",)
    list_display = ("email", "first_name", "last_name", "is_staff", "is_active", "last_login")
    list_filter = ("is_staff", "is_superuser", "is_active")
    search_fields = ("email__startswith",)
    search_help_text = "The beginning of an e-mail address"
    fieldsets = (
        (None, {"fields": ("email", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "time_zone", "theme")}),
        ("Access", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")
    add_fieldsets = ((None, {"fields": ("email", "password1", "password2")}),)
    filter_horizontal = ()

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Only a superuser makes staff."""
        fixed = tuple(super().get_readonly_fields(request, obj))
        return fixed if request.user.is_superuser else (*fixed, "is_staff", "is_superuser")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        return (people_found(queryset, term) if term else queryset), False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


admin.site.unregister(EmailAddress)


@admin.register(EmailAddress)
class AddressAdmin(EmailAddressAdmin):
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("user",)
    search_help_text = "The beginning of an e-mail address"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        found = people_found(User.objects.all(), term).values_list("pk", flat=True)[:MOST_PEOPLE]
        return (queryset.filter(user__in=list(found)) if term else queryset), False


@admin.register(Team)
class TeamAdmin(ReadOnly):
    """A team is changed by its own people; staff suspend one. It goes by its owner's typed confirmation."""

    list_display = ("name", "slug", "time_zone", "created_at", "suspended_at")
    list_filter = (("suspended_at", admin.EmptyFieldListFilter),)
    search_fields = ("pk", "slug__startswith")
    search_help_text = "An id, or the beginning of a short name"
    actions = [
        staff_action(
            "suspend",
            "Suspend selected teams",
            lambda team, by, row: people.suspend_team(team=team, by=by),
            team_of=lambda row: row,
        ),
        staff_action(
            "resume",
            "Resume selected teams",
            lambda team, by, row: people.resume_team(team=team, by=by),
            team_of=lambda row: row,
        ),
    ]


@admin.register(Membership)
class MembershipAdmin(ReadOnly):
    list_display = ("user", "team", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("user", "team")
    search_fields = ("pk", "user__email__startswith")
    search_help_text = "An id, or the beginning of an e-mail address"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        found = list(people_found(User.objects.all(), term).values_list("pk", flat=True)[:MOST_PEOPLE])
        by_id, _ = super().get_search_results(request, queryset, term) if len(term) == 36 else (queryset.none(), False)
        return (by_id | queryset.filter(user__in=found)), False


@admin.register(Invitation)
class InvitationAdmin(ReadOnly):
    list_display = ("email", "team", "role", "sent_at", "expires_at", "accepted_at", "revoked_at")
    list_filter = ("role", ("accepted_at", admin.EmptyFieldListFilter), ("revoked_at", admin.EmptyFieldListFilter))
    list_select_related = ("team",)
    search_fields = ("pk", "email")
    search_help_text = "An id, or a whole e-mail address in lower case"


@admin.register(TeamDeletion)
class TeamDeletionAdmin(ReadOnly):
    """Of every team: the row outlives its team, which nobody can work in any more."""

    list_display = ("team_name", "state", "rows_deleted", "rows_total", "created_at", "finished_at", "error")
    list_filter = ("state",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[TeamDeletion]:
        return super(ReadOnly, self).get_queryset(request)


@admin.register(Agent)
class AgentAdmin(ReadOnly):
    list_display = ("slug", "team", "name", "created_at", "disabled_at")
    list_filter = (("disabled_at", admin.EmptyFieldListFilter),)
    list_select_related = ("team",)
    search_fields = ("pk", "slug__startswith")
    search_help_text = "An id, or the beginning of a short name"
    actions = [
        staff_action(
            "disable",
            "Disable selected agents",
            lambda team, by, agent: actions.change_agent(team=team, by=by, agent=agent, disabled=True),
        ),
        staff_action(
            "enable",
            "Enable selected agents",
            lambda team, by, agent: actions.change_agent(team=team, by=by, agent=agent, disabled=False),
        ),
    ]


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnly):
    list_display = ("prefix", "name", "team", "agent", "last_used_at", "expires_at", "revoked_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    list_select_related = ("team", "agent")
    search_fields = ("pk", "prefix")
    search_help_text = "An id, or the eight letters behind hs_"
    exclude = ("digest",)
    actions = [
        staff_action(
            "revoke",
            "Revoke selected tokens for good",
            lambda team, by, token: actions.revoke_token(team=team, by=by, token=token),
        )
    ]


class VerbFilter(Bounded):
    title, parameter_name, column = "verb", "verb", "verb"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        team = chosen_team(request)
        families = audit_choices.verbs_of(team) if team else {}
        return [(verb, verb) for verbs in families.values() for verb in verbs]


class KindFilter(Bounded):
    title, parameter_name, column = "object", "kind", "object_type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        team = chosen_team(request)
        return [(kind, kind) for kind in audit_choices.kinds_of(team)] if team else []


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnly):
    list_display = ("at", "team", "actor_label", "verb", "object_type", "object_id")
    list_filter = ("actor_kind", KindFilter, VerbFilter, ("at", WHEN))
    list_select_related = ("team",)
    search_fields = ("object_id", "request_id")
    search_help_text = "The id of an object or of a request"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term, team = search_term.strip(), chosen_team(request)
        if not term or team is None:
            return queryset, False
        # An id alone could use no index: the kinds stand before it there.
        of_object = Q(object_type__in=audit_choices.kinds_of(team), object_id=term)
        return queryset.filter(of_object | Q(request_id=term)), False


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ReadOnly):
    list_display = ("key", "team", "status_code", "created_at")
    list_filter = (("created_at", WHEN),)
    list_select_related = ("team",)
    exclude = ("request_digest",)


@admin.register(Job)
class JobAdmin(ReadOnly):
    list_display = ("kind", "team", "status", "done", "total", "attempts", "created_at", "finished_at", "error")
    list_filter = ("kind", "status", ("created_at", WHEN))
    list_select_related = ("team",)
    exclude = ("sealed",)


@admin.register(JobChunk)
class JobChunkAdmin(ReadOnly):
    list_display = ("job_id", "team", "role", "number", "size", "expires_at")
    list_filter = ("role",)
    list_select_related = ("team",)
    exclude = ("data",)


@admin.register(Webhook)
class WebhookAdmin(ReadOnly):
    list_display = ("url", "team", "events", "created_at", "disabled_at", "disabled_because")
    list_filter = (("disabled_at", admin.EmptyFieldListFilter),)
    list_select_related = ("team",)
    search_fields = ("pk",)
    search_help_text = "An id"
    exclude = ("sealed_secret",)


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnly):
    list_display = ("event", "team", "url", "status", "attempts", "response_status", "error", "created_at")
    list_filter = ("status", "event")
    list_select_related = ("team",)
    search_fields = ("pk",)
    search_help_text = "An id"
