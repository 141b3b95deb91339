"""A trace is known again by what it tells."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reflection", "0006_team_models")]

    operations = [
        migrations.AddField(
            model_name="trace",
            name="digest",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
    ]
