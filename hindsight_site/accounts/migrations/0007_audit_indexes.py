"""The audit is narrowed by verb, by who did it and by request, and the selects of both skip through these indexes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0006_jobs")]

    operations = [
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(fields=["team", "verb", "-at"], name="auditevent_verb"),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(fields=["team", "actor_kind", "actor_id", "-at"], name="auditevent_actor"),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(
                fields=["team", "request_id"], name="auditevent_request", condition=models.Q(("request_id", ""), _negated=True)
            ),
        ),
    ]
