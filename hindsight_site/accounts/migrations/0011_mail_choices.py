"""Each person may switch off what they are mailed unasked."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0010_write_marks")]

    operations = [
        migrations.AddField(
            "user",
            "mails_off",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=20), blank=True, default=list, size=None
            ),
        ),
    ]
