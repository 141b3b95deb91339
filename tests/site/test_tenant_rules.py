"""The day-one rules of every tenant table, checked on all models and in the database itself."""

from __future__ import annotations

import uuid

import pytest
from django.apps import apps
from django.contrib.postgres.indexes import GinIndex
from django.db import DatabaseError, IntegrityError, connection, models, transaction

from hindsight_site.accounts.models import AuditEvent, SigningKey, Team, TeamDeletion, User
from hindsight_site.accounts.tenancy import SameTeam, TeamQuerySet
from memories.models import Memory, MemoryTerms, MemoryVector, Scope
from tests import factories

OURS = ("accounts", "memories", "reflection")
# A signing key is the site's: it signs the access tokens of every team.
NOT_TENANT = {Team, User, SigningKey}
SEARCH_TABLES = {MemoryTerms, MemoryVector}
# The prefix finds the token before the team is known.
UNIQUE_WITHOUT_TEAM = {("ApiToken", ("prefix",))}
# A person's teams are looked up before one of them is chosen.
INDEX_WITHOUT_TEAM = {*UNIQUE_WITHOUT_TEAM, ("Membership", ("user",))}

MODELS = [model for model in apps.get_models() if model._meta.app_label in OURS]
TENANT = [model for model in MODELS if model not in NOT_TENANT]


def of_each(function):
    return pytest.mark.parametrize("model", TENANT, ids=lambda model: model.__name__)(function)


def test_every_model_is_either_a_tenant_table_or_named_here() -> None:
    assert len(TENANT) >= 20
    without_team = {m for m in MODELS if not any(f.name == "team" for f in m._meta.fields)}
    assert without_team == NOT_TENANT


def test_many_to_many_tables_need_a_team_of_their_own() -> None:
    automatic = [m.__name__ for m in TENANT if m._meta.many_to_many]
    assert automatic == [], "a many-to-many through table would have no team_id: write the model out"


@of_each
def test_team_is_required_and_asked_for(model: type[models.Model]) -> None:
    field = model._meta.get_field("team")
    assert not field.null
    assert issubclass(model._default_manager._queryset_class, TeamQuerySet)


@of_each
def test_team_never_changes(model: type[models.Model]) -> None:
    names = {trigger.name for trigger in model._meta.triggers}
    assert names & {"team_never_changes", "append_only"}


@of_each
def test_public_ids_are_uuid7(model: type[models.Model]) -> None:
    if model in SEARCH_TABLES:
        return
    assert model._meta.pk.default().version == 7


@of_each
def test_unique_constraints_start_with_the_team(model: type[models.Model]) -> None:
    found = [tuple(c.fields) for c in model._meta.constraints if isinstance(c, models.UniqueConstraint)]
    found += [(f.name,) for f in model._meta.fields if f.unique and not f.primary_key]
    off = [fields for fields in found if fields[0] != "team" and (model.__name__, fields) not in UNIQUE_WITHOUT_TEAM]
    assert off == []


@of_each
def test_indexes_start_with_the_team(model: type[models.Model]) -> None:
    off = [index.name for index in model._meta.indexes if index.fields[0] != "team"]
    off += [
        f.name
        for f in model._meta.fields
        if f.db_index and not f.primary_key and (model.__name__, (f.name,)) not in INDEX_WITHOUT_TEAM
    ]
    assert off == []
    assert all(isinstance(index, models.Index | GinIndex) for index in model._meta.indexes)


@of_each
def test_foreign_keys_between_tenant_tables_are_checked_with_the_team(model: type[models.Model]) -> None:
    checked = {c.field: c.to for c in model._meta.constraints if isinstance(c, SameTeam)}
    for field in model._meta.fields:
        if field.is_relation and field.related_model in TENANT:
            assert checked.get(field.name) == field.related_model._meta.db_table, field.name


@pytest.mark.django_db
def test_the_database_holds_what_the_models_say() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT c.conrelid::regclass::text, array_agg(a.attname ORDER BY k.n)
            FROM pg_constraint c
            JOIN LATERAL unnest(c.conkey) WITH ORDINALITY k(col, n) ON true
            JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.col
            WHERE c.contype = 'f' AND c.confrelid::regclass::text = ANY(%s)
            GROUP BY c.oid, c.conrelid
            """,
            [[model._meta.db_table for model in TENANT]],
        )
        keys = cursor.fetchall()
    assert len(keys) > 30
    assert [key for key in keys if key[1][0] != "team_id"] == []


@pytest.mark.django_db
def test_the_database_refuses_a_new_team_for_a_row(agent, other_team) -> None:
    memory = factories.memory(agent)
    with pytest.raises(DatabaseError), transaction.atomic():
        Memory.objects.filter(pk=memory.pk).update(team=other_team)


@pytest.mark.django_db
def test_the_database_refuses_a_row_that_points_into_another_team(agent, other_agent) -> None:
    foreign = Scope.objects.of(other_agent.team).get(agent=other_agent)
    memory = factories.memory(agent)
    Memory.objects.of(agent.team).filter(pk=memory.pk).update(scope=foreign)
    with pytest.raises(IntegrityError), transaction.atomic():
        connection.check_constraints()
    Memory.objects.of(agent.team).filter(pk=memory.pk).update(scope=memory.scope)


@pytest.mark.django_db
def test_the_audit_cannot_be_rewritten(agent) -> None:
    event = AuditEvent.objects.of(agent.team).first()
    assert event is not None
    for change in (lambda: AuditEvent.objects.filter(pk=event.pk).update(verb="x"), event.delete):
        with pytest.raises(DatabaseError), transaction.atomic():
            change()


@pytest.mark.django_db
def test_a_vector_belongs_to_a_memory_of_its_team(agent, other_agent) -> None:
    memory = factories.memory(agent)
    row = MemoryVector.objects.of(agent.team).get(memory=memory)
    stranger = MemoryVector(
        team=other_agent.team, memory=memory, scope=row.scope, status=row.status, model_id="other",
        embedding=row.embedding,
    )  # fmt: skip
    stranger.save(force_insert=True)
    with pytest.raises(IntegrityError):
        connection.check_constraints()
    transaction.set_rollback(True)


def test_ids_sort_by_time() -> None:
    from hindsight_site.accounts.ids import new_id

    made = [new_id() for _ in range(200)]
    assert made == sorted(made)
    assert len({uuid.UUID(str(ident)) for ident in made}) == 200


@pytest.mark.django_db
@of_each
def test_every_table_of_a_team_is_fenced(model: type[models.Model]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relrowsecurity AND relforcerowsecurity FROM pg_class WHERE relname = %s", [model._meta.db_table]
        )
        fenced = cursor.fetchone()[0]
    # The record that a team was deleted is read when the team is gone.
    assert fenced == (model not in {*SEARCH_TABLES, TeamDeletion})
