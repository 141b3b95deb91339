"""Some memories of a sample are judged by two people; an item knows how it ended."""

from django.db import migrations, models
from django.db.models import Q

DECISIONS = [
    ("approve", "Approved"),
    ("demote", "Demoted"),
    ("edit", "Edited"),
    ("cannot_tell", "Could not tell"),
    ("sensitive", "Flagged as sensitive"),
]

# The rows of all teams: the fence is taken away for this statement, and put back in the same transaction.
OUTCOMES = """
ALTER TABLE reflection_reviewitem NO FORCE ROW LEVEL SECURITY;
ALTER TABLE reflection_verdict NO FORCE ROW LEVEL SECURITY;
UPDATE reflection_reviewitem AS item SET outcome = first.decision
FROM (
    SELECT DISTINCT ON (team_id, item_id) team_id, item_id, decision FROM reflection_verdict
    WHERE undone_at IS NULL AND decision <> 'cannot_tell' ORDER BY team_id, item_id, created_at, id
) AS first
WHERE first.team_id = item.team_id AND first.item_id = item.id AND item.state = 'decided';
ALTER TABLE reflection_verdict FORCE ROW LEVEL SECURITY;
ALTER TABLE reflection_reviewitem FORCE ROW LEVEL SECURITY;
"""


class Migration(migrations.Migration):
    dependencies = [("reflection", "0007_trace_digest")]

    operations = [
        migrations.AddField("reviewitem", "quorum", models.PositiveSmallIntegerField(default=1)),
        migrations.AddField(
            "reviewitem", "outcome", models.CharField(blank=True, choices=DECISIONS, default="", max_length=11)
        ),
        migrations.AddField(
            "reviewitem", "expected", models.CharField(blank=True, choices=DECISIONS, default="", max_length=11)
        ),
        migrations.AlterField(
            "reviewitem",
            "state",
            models.CharField(
                choices=[
                    ("pending", "Pending"),
                    ("decided", "Decided"),
                    ("conflicted", "Two opinions"),
                    ("resolved", "Settled"),
                    ("void", "Void"),
                ],
                default="pending",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            "reviewitem",
            "stratum",
            models.CharField(
                choices=[
                    ("random", "Random sample"),
                    ("most_recalled", "Most recalled, never reviewed"),
                    ("low_confidence", "Low confidence"),
                    ("flagged", "Flagged for review"),
                    ("canary", "Known answer"),
                ],
                max_length=16,
            ),
        ),
        migrations.AddField("verdict", "content", models.TextField(blank=True, default="")),
        migrations.AddField("verdict", "settles", models.BooleanField(default=False)),
        migrations.AddField("verdict", "is_blind", models.BooleanField(default=True)),
        migrations.RemoveConstraint("verdict", "verdict_one_standing"),
        migrations.AddConstraint(
            "verdict",
            models.UniqueConstraint(
                fields=["team", "item", "reviewer", "settles"],
                name="verdict_one_standing",
                condition=Q(undone_at__isnull=True),
            ),
        ),
        migrations.RunSQL(OUTCOMES, migrations.RunSQL.noop),
    ]
