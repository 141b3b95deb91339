"""Memories and what hangs on them are visible to their team only. The two search tables are not fenced:
they hold no text, are always asked by team, and the fence would make their GIN index unusable."""

from django.db import migrations

from hindsight_site.accounts.row_security import fence

TABLES = ("scope", "scopegrant", "memory", "evidence", "revision", "relation", "recall", "recallhit", "feedback")


class Migration(migrations.Migration):
    dependencies = [("memories", "0002_vectors_in_line"), ("accounts", "0004_row_security")]

    operations = [fence(f"memories_{name}") for name in TABLES]
