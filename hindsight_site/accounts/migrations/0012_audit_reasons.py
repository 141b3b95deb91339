"""Why somebody did what the audit records, in their own words: kept beside it, so that they can be deleted."""

import django.db.models.deletion
import django.utils.timezone
import hindsight_site.accounts.ids
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from hindsight_site.accounts.row_security import fence


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0011_mail_choices'),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditReason',
            fields=[
                ('id', models.UUIDField(default=hindsight_site.accounts.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('event_id', models.UUIDField()),
                ('verb', models.CharField(max_length=60)),
                ('object_type', models.CharField(max_length=40)),
                ('object_id', models.CharField(max_length=64)),
                ('words', models.TextField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('team', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
            ],
            options={
                'indexes': [models.Index(fields=['team', 'object_type', 'object_id'], name='auditreason_object')],
                'constraints': [models.UniqueConstraint(fields=('team', 'id'), name='auditreason_team_id'), models.UniqueConstraint(fields=('team', 'event_id'), name='auditreason_event')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='auditreason',
            trigger=pgtrigger.compiler.Trigger(name='team_never_changes', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."team_id" IS DISTINCT FROM (NEW."team_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='2d791a0661836fb52887bcf6d20a0b72ff38f91c', operation='UPDATE', pgid='pgtrigger_team_never_changes_664bd', table='accounts_auditreason', when='BEFORE')),
        ),
        fence("accounts_auditreason"),
    ]
