"""MCP clients that people connect: permissions, codes and refresh tokens."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
import hindsight_site.accounts.ids
import hindsight_site.accounts.tenancy
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

from hindsight_site.accounts.row_security import fence


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0007_audit_indexes'),
    ]

    operations = [
        migrations.AddField(
            model_name='apitoken',
            name='on_behalf_of',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.CreateModel(
            name='ConnectedClient',
            fields=[
                ('id', models.UUIDField(default=hindsight_site.accounts.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('client_id', models.TextField()),
                ('client_name', models.CharField(max_length=120)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('team', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
                ('token', hindsight_site.accounts.tenancy.TeamForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.apitoken')),
            ],
        ),
        migrations.CreateModel(
            name='AuthorizationCode',
            fields=[
                ('id', models.UUIDField(default=hindsight_site.accounts.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('digest', models.BinaryField(max_length=32)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), size=None)),
                ('client_id', models.TextField()),
                ('client_name', models.CharField(max_length=120)),
                ('redirect_uri', models.TextField()),
                ('challenge', models.CharField(max_length=43)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('agent', hindsight_site.accounts.tenancy.TeamForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.agent')),
                ('person', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
                ('connected', hindsight_site.accounts.tenancy.TeamForeignKey(blank=True, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.connectedclient')),
            ],
        ),
        migrations.CreateModel(
            name='RefreshToken',
            fields=[
                ('id', models.UUIDField(default=hindsight_site.accounts.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('digest', models.BinaryField(max_length=32)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('connected', hindsight_site.accounts.tenancy.TeamForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.connectedclient')),
                ('team', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
            ],
        ),
        migrations.AddConstraint(
            model_name='connectedclient',
            constraint=models.UniqueConstraint(fields=('team', 'id'), name='connectedclient_team_id'),
        ),
        migrations.AddConstraint(
            model_name='connectedclient',
            constraint=hindsight_site.accounts.tenancy.SameTeam(field='token', name='connectedclient_token_same_team', to='accounts_apitoken'),
        ),
        migrations.AddConstraint(
            model_name='connectedclient',
            constraint=models.UniqueConstraint(fields=('team', 'token'), name='connectedclient_token'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='connectedclient',
            trigger=pgtrigger.compiler.Trigger(name='team_never_changes', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."team_id" IS DISTINCT FROM (NEW."team_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='273e0515fc17ef58be1e57e05fb2e01e949e72c0', operation='UPDATE', pgid='pgtrigger_team_never_changes_11e66', table='accounts_connectedclient', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='authorizationcode',
            constraint=models.UniqueConstraint(fields=('team', 'id'), name='authorizationcode_team_id'),
        ),
        migrations.AddConstraint(
            model_name='authorizationcode',
            constraint=hindsight_site.accounts.tenancy.SameTeam(field='agent', name='authorizationcode_agent_same_team', to='accounts_agent'),
        ),
        migrations.AddConstraint(
            model_name='authorizationcode',
            constraint=hindsight_site.accounts.tenancy.SameTeam(field='connected', name='authorizationcode_connected_same_team', to='accounts_connectedclient'),
        ),
        migrations.AddConstraint(
            model_name='authorizationcode',
            constraint=models.UniqueConstraint(fields=('team', 'digest'), name='authorizationcode_digest'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='authorizationcode',
            trigger=pgtrigger.compiler.Trigger(name='team_never_changes', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."team_id" IS DISTINCT FROM (NEW."team_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='b6deafecfb5a123dbf1b6a2607dd72abec6a5b36', operation='UPDATE', pgid='pgtrigger_team_never_changes_bcd99', table='accounts_authorizationcode', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='refreshtoken',
            constraint=models.UniqueConstraint(fields=('team', 'id'), name='refreshtoken_team_id'),
        ),
        migrations.AddConstraint(
            model_name='refreshtoken',
            constraint=hindsight_site.accounts.tenancy.SameTeam(field='connected', name='refreshtoken_connected_same_team', to='accounts_connectedclient'),
        ),
        migrations.AddConstraint(
            model_name='refreshtoken',
            constraint=models.UniqueConstraint(fields=('team', 'digest'), name='refreshtoken_digest'),
        ),
        migrations.AddIndex(
            model_name='refreshtoken',
            index=models.Index(fields=['team', 'connected', 'expires_at'], name='refreshtoken_chain'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='refreshtoken',
            trigger=pgtrigger.compiler.Trigger(name='team_never_changes', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."team_id" IS DISTINCT FROM (NEW."team_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='909380ec30ec6afef0b568f7154ee8ed651858ab', operation='UPDATE', pgid='pgtrigger_team_never_changes_dc71b', table='accounts_refreshtoken', when='BEFORE')),
        ),
        *(fence(f"accounts_{name}") for name in ("connectedclient", "authorizationcode", "refreshtoken")),
    ]
