"""Evidence points at a step of its own team.

The memories app does not know of steps, so the constraint is added from here.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("reflection", "0001_initial"), ("memories", "0001_initial")]

    operations = [
        migrations.RunSQL(
            """
            ALTER TABLE memories_evidence
            ADD CONSTRAINT evidence_step_same_team FOREIGN KEY (team_id, step_id)
            REFERENCES reflection_step (team_id, id) DEFERRABLE INITIALLY DEFERRED
            """,
            "ALTER TABLE memories_evidence DROP CONSTRAINT evidence_step_same_team",
        )
    ]
