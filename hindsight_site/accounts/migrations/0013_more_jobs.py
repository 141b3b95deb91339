"""Looks across episodes and re-embedding are jobs too."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0012_audit_reasons")]

    operations = [
        migrations.AlterField(
            "job",
            "kind",
            models.CharField(
                choices=[
                    ("erasure", "Erasure"),
                    ("export", "Export"),
                    ("import", "Import"),
                    ("invariants", "Integrity check"),
                    ("consolidation", "Look across episodes"),
                    ("reembedding", "Re-embedding"),
                ],
                max_length=16,
            ),
        ),
    ]
