"""A reflection may refine what is known."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reflection", "0004_looks_across")]

    operations = [
        migrations.AlterField(
            model_name="reflectionresult",
            name="effect",
            field=models.CharField(
                choices=[
                    ("created", "Written"),
                    ("confirmed", "Confirmed"),
                    ("refined", "Refined"),
                    ("quarantined", "Quarantined"),
                ],
                max_length=11,
            ),
        ),
    ]
