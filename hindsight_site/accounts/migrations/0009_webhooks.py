"""Webhooks of a team, and every message to them."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
import hindsight_site.accounts.ids
import hindsight_site.accounts.tenancy
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from hindsight_site.accounts.row_security import fence


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0008_connected_clients'),
    ]

    operations = [
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.UUIDField(default=hindsight_site.accounts.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('url', models.URLField(max_length=500)),
                ('description', models.CharField(blank=True, default='', max_length=200)),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('reflection.finished', 'A reflection has ended'), ('memory.needs_review', 'A memory waits for a person'), ('memory.quarantined', 'A memory was quarantined'), ('batch.opened', "The week's review has opened"), ('batch.closed', "The week's review has closed"), ('job.finished', 'A job has ended'), ('ping', 'A test, sent by hand')], max_length=30), size=None)),
                ('sealed_secret', models.BinaryField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('disabled_at', models.DateTimeField(blank=True, null=True)),
                ('disabled_because', models.CharField(blank=True, default='', max_length=200)),
                ('team', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
            ],
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.UUIDField(default=hindsight_site.accounts.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('url', models.URLField(max_length=500)),
                ('event', models.CharField(choices=[('reflection.finished', 'A reflection has ended'), ('memory.needs_review', 'A memory waits for a person'), ('memory.quarantined', 'A memory was quarantined'), ('batch.opened', "The week's review has opened"), ('batch.closed', "The week's review has closed"), ('job.finished', 'A job has ended'), ('ping', 'A test, sent by hand')], max_length=30)),
                ('payload', models.JSONField()),
                ('status', models.CharField(choices=[('queued', 'Waiting'), ('running', 'Being sent'), ('delivered', 'Delivered'), ('failed', 'Given up')], default='queued', max_length=9)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('fence', models.PositiveIntegerField(default=0)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('run_after', models.DateTimeField(default=django.utils.timezone.now)),
                ('response_status', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('error', models.CharField(blank=True, default='', max_length=200)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('team', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
                ('webhook', hindsight_site.accounts.tenancy.TeamForeignKey(blank=True, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='accounts.webhook')),
            ],
            options={
                'verbose_name_plural': 'webhook deliveries',
            },
        ),
        migrations.AddIndex(
            model_name='webhook',
            index=models.Index(fields=['team', '-created_at', '-id'], name='webhook_newest'),
        ),
        migrations.AddConstraint(
            model_name='webhook',
            constraint=models.UniqueConstraint(fields=('team', 'id'), name='webhook_team_id'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='webhook',
            trigger=pgtrigger.compiler.Trigger(name='team_never_changes', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."team_id" IS DISTINCT FROM (NEW."team_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='12d72b14a5b4af315bb6be3368fdba78b656a0f2', operation='UPDATE', pgid='pgtrigger_team_never_changes_bb85d', table='accounts_webhook', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(fields=['team', '-created_at', '-id'], name='delivery_newest'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(fields=['team', 'webhook', '-created_at'], name='delivery_of_webhook'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(condition=models.Q(('status__in', ['queued', 'running'])), fields=['team', 'run_after'], name='delivery_due'),
        ),
        migrations.AddConstraint(
            model_name='webhookdelivery',
            constraint=models.UniqueConstraint(fields=('team', 'id'), name='webhookdelivery_team_id'),
        ),
        migrations.AddConstraint(
            model_name='webhookdelivery',
            constraint=hindsight_site.accounts.tenancy.SameTeam(field='webhook', name='webhookdelivery_webhook_same_team', to='accounts_webhook'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='webhookdelivery',
            trigger=pgtrigger.compiler.Trigger(name='team_never_changes', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."team_id" IS DISTINCT FROM (NEW."team_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='81e6e1f33015f5d6b8a15803749ef177e5be48f9', operation='UPDATE', pgid='pgtrigger_team_never_changes_f8d3b', table='accounts_webhookdelivery', when='BEFORE')),
        ),
        fence("accounts_webhook"),
        fence("accounts_webhookdelivery"),
    ]
