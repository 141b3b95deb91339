"""Traces that tell the same are one source; the belief hears each voice once a day."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0006_receipts")]

    operations = [
        migrations.AddField(
            model_name="evidence",
            name="trace_digest",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
        migrations.AddField(
            model_name="evidence",
            name="witness_id",
            field=models.UUIDField(blank=True, null=True),
        ),
        # Whatever was told before was believed in full: the column is filled as it is made.
        migrations.AddField(
            model_name="feedback",
            name="credit",
            field=models.FloatField(blank=True, default=1.0, null=True),
        ),
        migrations.AlterField(
            model_name="feedback",
            name="credit",
            field=models.FloatField(blank=True, null=True),
        ),
    ]
