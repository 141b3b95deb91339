"""Traces, runs and reviews are visible to their team only."""

from django.db import migrations

from hindsight_site.accounts.row_security import fence

TABLES = ("trace", "step", "reflection", "reflectionresult", "reviewbatch", "reviewitem", "verdict")


class Migration(migrations.Migration):
    dependencies = [("reflection", "0002_evidence_rests_on_steps"), ("accounts", "0004_row_security")]

    operations = [fence(f"reflection_{name}") for name in TABLES]
