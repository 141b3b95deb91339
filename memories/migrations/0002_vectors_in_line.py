"""Keep vectors in the row: an exact search reads them all, and a detour through TOAST costs more than it saves."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("memories", "0001_initial")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE memories_memoryvector ALTER COLUMN embedding SET STORAGE PLAIN",
            "ALTER TABLE memories_memoryvector ALTER COLUMN embedding SET STORAGE DEFAULT",
        )
    ]
