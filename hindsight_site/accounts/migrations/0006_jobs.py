"""Long work as rows, and the sealed files that belong to it."""

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
        ('accounts', '0005_throttle'),
    ]

    operations = [
        migrations.CreateModel(
            name='Job',
            fields=[
                ('id', models.UUIDField(default=hindsight_site.accounts.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('erasure', 'Erasure'), ('export', 'Export'), ('import', 'Import'), ('invariants', 'Integrity check')], max_length=12)),
                ('arguments', models.JSONField(blank=True, default=dict)),
                ('sealed', models.BinaryField(blank=True, null=True)),
                ('status', models.CharField(choices=[('queued', 'Waiting for a worker'), ('running', 'At work'), ('done', 'Done'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=9)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('fence', models.PositiveIntegerField(default=0)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('run_after', models.DateTimeField(default=django.utils.timezone.now)),
                ('cancel_requested_at', models.DateTimeField(blank=True, null=True)),
                ('cursor', models.JSONField(blank=True, default=dict)),
                ('done', models.PositiveBigIntegerField(default=0)),
                ('total', models.PositiveBigIntegerField(default=0)),
                ('doing', models.CharField(blank=True, default='', max_length=80)),
                ('result', models.JSONField(blank=True, default=dict)),
                ('error', models.CharField(blank=True, default='', max_length=500)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('begun_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('person', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
                ('token', hindsight_site.accounts.tenancy.TeamForeignKey(blank=True, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='accounts.apitoken')),
            ],
        ),
        migrations.CreateModel(
            name='JobChunk',
            fields=[
                ('id', models.UUIDField(default=hindsight_site.accounts.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('role', models.CharField(choices=[('upload', 'What was sent'), ('output', 'What was made')], max_length=6)),
                ('number', models.PositiveIntegerField()),
                ('data', models.BinaryField()),
                ('size', models.PositiveIntegerField()),
                ('expires_at', models.DateTimeField()),
                ('job', hindsight_site.accounts.tenancy.TeamForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='chunks', to='accounts.job')),
                ('team', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
            ],
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(fields=['team', '-created_at', '-id'], name='job_newest'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(fields=['team', 'kind', '-created_at'], name='job_of_kind'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('status__in', ['queued', 'running'])), fields=['team', 'run_after'], name='job_due'),
        ),
        migrations.AddConstraint(
            model_name='job',
            constraint=models.UniqueConstraint(fields=('team', 'id'), name='job_team_id'),
        ),
        migrations.AddConstraint(
            model_name='job',
            constraint=hindsight_site.accounts.tenancy.SameTeam(field='token', name='job_token_same_team', to='accounts_apitoken'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='job',
            trigger=pgtrigger.compiler.Trigger(name='team_never_changes', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."team_id" IS DISTINCT FROM (NEW."team_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='4b35e945a35c700a8c239fe495a6cfe1beb6123a', operation='UPDATE', pgid='pgtrigger_team_never_changes_f9d32', table='accounts_job', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='jobchunk',
            index=models.Index(fields=['team', 'expires_at'], name='jobchunk_age'),
        ),
        migrations.AddConstraint(
            model_name='jobchunk',
            constraint=models.UniqueConstraint(fields=('team', 'id'), name='jobchunk_team_id'),
        ),
        migrations.AddConstraint(
            model_name='jobchunk',
            constraint=hindsight_site.accounts.tenancy.SameTeam(field='job', name='jobchunk_job_same_team', to='accounts_job'),
        ),
        migrations.AddConstraint(
            model_name='jobchunk',
            constraint=models.UniqueConstraint(fields=('team', 'job', 'role', 'number'), name='jobchunk_once'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='jobchunk',
            trigger=pgtrigger.compiler.Trigger(name='team_never_changes', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."team_id" IS DISTINCT FROM (NEW."team_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='88e9849ff43a0c5432f2b6c804fc1084c5752c1a', operation='UPDATE', pgid='pgtrigger_team_never_changes_8a5ef', table='accounts_jobchunk', when='BEFORE')),
        ),
        fence("accounts_job"),
        fence("accounts_jobchunk"),
    ]
