"""A look across a shared scope belongs to no single agent."""

import django.db.models.deletion
from django.db import migrations

import hindsight_site.accounts.tenancy


class Migration(migrations.Migration):
    dependencies = [("reflection", "0003_row_security")]

    operations = [
        migrations.AlterField(
            model_name="reflection",
            name="agent",
            field=hindsight_site.accounts.tenancy.TeamForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="reflections",
                to="accounts.agent",
            ),
        ),
    ]
