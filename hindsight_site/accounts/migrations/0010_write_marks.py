"""Up to where in the write-ahead log a replica must have come to have all that a team has written."""

from django.db import migrations

# Not logged, like the buckets of the rate limits: writing a mark waits for no disk, and losing all of them in a crash
# is allowed for (see `hindsight_site.accounts.replica`). No foreign key: it locks no row of another table.
MARKS = """
CREATE UNLOGGED TABLE accounts_writemark (
    team_id uuid PRIMARY KEY,
    lsn pg_lsn NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)
"""


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0009_webhooks'),
    ]

    operations = [
        migrations.RunSQL(MARKS, "DROP TABLE accounts_writemark"),
    ]
