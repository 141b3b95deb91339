"""What a vector index beside PostgreSQL is still to be told: see docs/adr/0014."""

import django.db.models.deletion
import django.utils.timezone
import hindsight_site.accounts.ids
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from hindsight_site.accounts.row_security import fence


class Migration(migrations.Migration):
    dependencies = [("accounts", "0010_write_marks"), ("memories", "0007_evidence_sources")]

    operations = [
        migrations.CreateModel(
            name='VectorChange',
            fields=[
                ('id', models.UUIDField(default=hindsight_site.accounts.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('memory_id', models.UUIDField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('claim', models.UUIDField(null=True)),
                ('claimed_until', models.DateTimeField(null=True)),
                ('team', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('team', 'id'), name='vectorchange_team_id')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='vectorchange',
            trigger=pgtrigger.compiler.Trigger(name='team_never_changes', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."team_id" IS DISTINCT FROM (NEW."team_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='c71bee9e89f1d18944048180dc088bd92ed71777', operation='UPDATE', pgid='pgtrigger_team_never_changes_591ee', table='memories_vectorchange', when='BEFORE')),
        ),
        fence("memories_vectorchange"),
    ]
