"""A team may bring a model of its own."""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import hindsight_site.accounts.ids
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from hindsight_site.accounts.row_security import fence


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0009_webhooks'),
        ('reflection', '0005_operations'),
    ]

    operations = [
        migrations.CreateModel(
            name='TeamModel',
            fields=[
                ('id', models.UUIDField(default=hindsight_site.accounts.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('base_url', models.URLField(max_length=500)),
                ('sealed_key', models.BinaryField(blank=True, null=True)),
                ('model', models.CharField(max_length=120)),
                ('model_strong', models.CharField(blank=True, default='', max_length=120)),
                ('price_in', models.FloatField(default=0.0, validators=[django.core.validators.MinValueValidator(0)])),
                ('price_out', models.FloatField(default=0.0, validators=[django.core.validators.MinValueValidator(0)])),
                ('run_tokens', models.PositiveIntegerField(default=0)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('team', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('team', 'id'), name='teammodel_team_id'), models.UniqueConstraint(fields=('team',), name='teammodel_one_of_a_team')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='teammodel',
            trigger=pgtrigger.compiler.Trigger(name='team_never_changes', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."team_id" IS DISTINCT FROM (NEW."team_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='5fc51c85cc4694b9c0cd765c891464228fc0f990', operation='UPDATE', pgid='pgtrigger_team_never_changes_be08d', table='reflection_teammodel', when='BEFORE')),
        ),
        fence("reflection_teammodel"),
    ]
