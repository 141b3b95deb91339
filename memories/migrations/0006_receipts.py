"""A receipt can prove what was handed out: a digest of the context, and which hits were told to be contested."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0005_life")]

    operations = [
        migrations.AddField(
            model_name="recall",
            name="context_digest",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
        migrations.AddField(
            model_name="recallhit",
            name="contested",
            field=models.BooleanField(default=False),
        ),
    ]
