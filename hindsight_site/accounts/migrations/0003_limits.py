"""What a team uses up, and the buckets of the rate limits."""

import django.db.models.deletion
import hindsight_site.accounts.ids
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

# Not logged: a crash leaves it empty, which is what full buckets look like, and a commit waits for no disk.
# No foreign keys: the limiter's transactions look at no other table and lock no row of one. Room is left in the
# pages so that an update stays in its page and touches no index.
BUCKETS = """
CREATE UNLOGGED TABLE accounts_ratebucket (
    team_id uuid NOT NULL,
    owner_id uuid NOT NULL, -- a token's bucket; the team's own where it is the team's id
    full_at bigint NOT NULL, -- microseconds since 1970
    day date NOT NULL, -- of `requests`, in UTC
    requests integer NOT NULL, -- that were let through
    PRIMARY KEY (team_id, owner_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)
"""


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_invitations'),
    ]

    operations = [
        migrations.CreateModel(
            name='TeamUsage',
            fields=[
                ('id', models.UUIDField(default=hindsight_site.accounts.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('traces', 'Traces'), ('model_tokens', 'Model tokens'), ('model_cost', 'Model cost')], max_length=12)),
                ('period', models.DateField()),
                ('slot', models.PositiveSmallIntegerField()),
                ('amount', models.PositiveBigIntegerField(default=0)),
                ('team', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
            ],
            options={
                'verbose_name_plural': 'team usage',
                'constraints': [models.UniqueConstraint(fields=('team', 'id'), name='teamusage_team_id'), models.UniqueConstraint(fields=('team', 'kind', 'period', 'slot'), name='teamusage_once')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='teamusage',
            trigger=pgtrigger.compiler.Trigger(name='team_never_changes', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."team_id" IS DISTINCT FROM (NEW."team_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='ac74cf256a437c56613b853655d947eae110989e', operation='UPDATE', pgid='pgtrigger_team_never_changes_e1284', table='accounts_teamusage', when='BEFORE')),
        ),
        migrations.RunSQL(BUCKETS, "DROP TABLE accounts_ratebucket"),
    ]
