"""The table of the cache in settings.CACHES: log-ins and sign-ups are counted in it."""

from django.db import migrations

# What `createcachetable` would make, so that migrating is all a new database needs.
TABLE = """
CREATE TABLE IF NOT EXISTS throttle (
    cache_key varchar(255) PRIMARY KEY, value text NOT NULL, expires timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS throttle_expires ON throttle (expires);
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_row_security")]

    operations = [migrations.RunSQL(TABLE, "DROP TABLE IF EXISTS throttle")]
