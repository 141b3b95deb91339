"""Staff curation of teams and people. History is read-only."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest

from hindsight_site.accounts.models import (
    Agent,
    ApiToken,
    AuditEvent,
    IdempotencyKey,
    Invitation,
    Membership,
    Team,
    TeamDeletion,
    User,
)


class ReadOnly(admin.ModelAdmin):
    """Rows that only the product's actions write: staff look, and nothing changes behind the audit."""

    show_full_result_count = False  # counting a large table costs more than it tells
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(User)
class PeopleAdmin(UserAdmin):
    ordering = ("email",)
    list_display = ("email", "first_name", "last_name", "is_staff", "is_active", "last_login")
    search_fields = ("email", "first_name", "last_name")
    fieldsets = (
        (None, {"fields": ("email", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "time_zone", "theme")}),
        ("Access", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")
    add_fieldsets = ((None, {"fields": ("email", "password1", "password2")}),)
    filter_horizontal = ()


@admin.register(Team)
class TeamAdmin(admin.ModelAdmin):
    list_display = ("name", "slug", "time_zone", "created_at", "suspended_at")
    search_fields = ("name", "slug")
    readonly_fields = ("created_at",)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # a team goes by its owner's typed confirmation, as a job with a record


@admin.register(Membership)
class MembershipAdmin(ReadOnly):
    list_display = ("user", "team", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("user", "team")
    search_fields = ("user__email",)


@admin.register(Invitation)
class InvitationAdmin(ReadOnly):
    list_display = ("email", "team", "role", "sent_at", "expires_at", "accepted_at", "revoked_at")
    list_filter = ("role",)
    list_select_related = ("team",)
    search_fields = ("email",)


@admin.register(TeamDeletion)
class TeamDeletionAdmin(ReadOnly):
    list_display = ("team_name", "state", "rows_deleted", "rows_total", "created_at", "finished_at", "error")
    list_filter = ("state",)


@admin.register(Agent)
class AgentAdmin(ReadOnly):
    list_display = ("slug", "team", "name", "created_at", "disabled_at")
    list_select_related = ("team",)
    search_fields = ("slug", "name")


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnly):
    list_display = ("prefix", "name", "team", "agent", "last_used_at", "expires_at", "revoked_at")
    list_select_related = ("team", "agent")
    search_fields = ("prefix", "name")
    exclude = ("digest",)


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnly):
    list_display = ("at", "team", "actor_label", "verb", "object_type", "object_id")
    list_filter = ("actor_kind", "object_type")
    list_select_related = ("team",)
    search_fields = ("object_id", "request_id")
    date_hierarchy = "at"


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ReadOnly):
    list_display = ("key", "team", "status_code", "created_at")
    list_select_related = ("team",)
    exclude = ("request_digest",)
