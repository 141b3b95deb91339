"""What makes a table belong to a team.

Day-one rules, each enforced by the database and by a test over all models:

- `team` is NOT NULL and never changes (trigger);
- every unique constraint and every index starts with it;
- a foreign key between tenant tables is checked on (team_id, id), so a row can only point at rows of
  its own team;
- `id` is a UUIDv7.

They are what hash partitions and a database distributed by `team_id` ask for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import pgtrigger
from django.conf import settings
from django.db import connection, models, transaction
from django.db.models.constraints import BaseConstraint

from hindsight_site.accounts.ids import new_id
from hindsight_site.middleware import current_team_id

if TYPE_CHECKING:
    from hindsight_site.accounts.models import Team, User


class TeamQuerySet(models.QuerySet):
    """A queryset that is asked for by team."""

    def of(self, team: Team) -> Self:
        """Return only the rows of `team`. Request code starts every query with this."""
        return self.filter(team_id=team.pk)


TeamManager = models.Manager.from_queryset(TeamQuerySet)


class TeamForeignKey(models.ForeignKey):
    """A foreign key inside a team: no constraint or index of its own.

    The table's `same_team(…)` constraint checks it on (team_id, id) instead, and indexes that start
    with the team are declared where a query needs them.
    """

    def __init__(self, to: Any, on_delete: Any, **options: Any) -> None:
        options["db_constraint"] = False
        options["db_index"] = False
        super().__init__(to, on_delete, **options)


class SameTeam(BaseConstraint):
    """`FOREIGN KEY (team_id, <field>_id) REFERENCES <to> (team_id, id)`, checked at commit."""

    def __init__(self, *, field: str, to: str, name: str) -> None:
        super().__init__(name=name)
        self.field = field
        self.to = to

    def _definition(self, schema_editor: Any) -> str:
        quote = schema_editor.quote_name
        return (
            f"CONSTRAINT {quote(self.name)} FOREIGN KEY (team_id, {quote(self.field + '_id')}) "
            f"REFERENCES {quote(self.to)} (team_id, id) DEFERRABLE INITIALLY DEFERRED"
        )

    def constraint_sql(self, model: Any, schema_editor: Any) -> str:
        return self._definition(schema_editor)

    def create_sql(self, model: Any, schema_editor: Any) -> str:
        table = schema_editor.quote_name(model._meta.db_table)
        return f"ALTER TABLE {table} ADD {self._definition(schema_editor)}"

    def remove_sql(self, model: Any, schema_editor: Any) -> str:
        table = schema_editor.quote_name(model._meta.db_table)
        return f"ALTER TABLE {table} DROP CONSTRAINT {schema_editor.quote_name(self.name)}"

    def validate(self, model: Any, instance: Any, exclude: Any = None, using: str = "default") -> None:
        """Forms get the database's answer: Django has no cheaper way to know."""

    def deconstruct(self) -> tuple[str, tuple, dict[str, Any]]:
        path, args, kwargs = super().deconstruct()
        return path, tuple(args), {**kwargs, "field": self.field, "to": self.to}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameTeam) and self.deconstruct() == other.deconstruct()

    def __hash__(self) -> int:
        return hash((self.name, self.field, self.to))


def tenant_constraints(table: str, **references: str) -> list[BaseConstraint]:
    """Return the constraints every tenant table has.

    `table` is a short name for constraint names; `references` maps each `TeamForeignKey` of the
    model to the table it points at.
    """
    return [
        models.UniqueConstraint(fields=["team", "id"], name=f"{table}_team_id"),
        *(SameTeam(field=field, to=to, name=f"{table}_{field}_same_team") for field, to in references.items()),
    ]


def team_never_changes() -> pgtrigger.Trigger:
    """A trigger that refuses an UPDATE of `team_id`."""
    return pgtrigger.ReadOnly(name="team_never_changes", fields=["team"])


def append_only(*operations: pgtrigger.Operation) -> pgtrigger.Trigger:
    """A trigger that refuses the given operations (default: UPDATE and DELETE)."""
    operation = operations or (pgtrigger.Update, pgtrigger.Delete)
    joined = operation[0]
    for more in operation[1:]:
        joined = joined | more
    return pgtrigger.Protect(name="append_only", operation=joined)


class TenantModel(models.Model):
    """A row that belongs to exactly one team."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, db_index=False, related_name="+")

    objects = TeamManager()

    class Meta:
        abstract = True


def enter_team(team: Team) -> None:
    """Tell PostgreSQL, for the rest of this transaction, which team is at work.

    Row-level security then shows the rows of this team and takes rows for no other.
    """
    current_team_id.set(str(team.pk))
    _set_locally("app.team", str(team.pk))


def enter_person(user: User) -> None:
    """Let a person's own memberships be read, before one of their teams is chosen."""
    _set_locally("app.user", str(user.pk))


def present_token(prefix: str) -> None:
    """Let the token with this prefix be read, before its team is known."""
    _set_locally("app.token", prefix)


def _set_locally(name: str, value: str) -> None:
    """Set it until the transaction ends; a session-level SET would leak through a pooler.

    Behind one the time-out of statements, otherwise the session's, is set along with it.
    """
    bound = settings.DATABASE_STATEMENT_TIMEOUT_MS if settings.IS_POOLED else 0
    also = f", set_config('statement_timeout', '{bound:d}', true)" if bound else ""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT set_config(%s, %s, true){also}", [name, value])  # noqa: S608 - a number of the settings


@contextmanager
def team_transaction(team: Team) -> Iterator[None]:
    """One transaction in which `team` is at work: for jobs and commands."""
    with transaction.atomic():
        enter_team(team)
        yield
