"""What people were mailed about the review."""

import django.db.models.deletion
import django.utils.timezone
import hindsight_site.accounts.ids
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

from hindsight_site.accounts.row_security import fence


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0011_mail_choices'),
        ('reflection', '0008_second_opinions'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ReviewMail',
            fields=[
                ('id', models.UUIDField(default=hindsight_site.accounts.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('review_opened', 'The weekly review has opened'), ('review_reminder', 'On Friday, when less than half of it is done'), ('review_drift', 'A week’s acceptance fell out of its usual range (owners and admins)'), ('flagged_sensitive', 'A memory was flagged as sensitive (owners and admins)')], max_length=20)),
                ('about', models.CharField(max_length=40)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('sending', 'Being sent'), ('sent', 'Sent'), ('dropped', 'Not needed any more'), ('failed', 'Failed')], default='queued', max_length=8)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('error', models.CharField(blank=True, default='', max_length=200)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('changed_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('team', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('status__in', ['queued', 'sending'])), fields=['team', 'changed_at'], name='reviewmail_open')],
                'constraints': [models.UniqueConstraint(fields=('team', 'id'), name='reviewmail_team_id'), models.UniqueConstraint(fields=('team', 'kind', 'about', 'user'), name='reviewmail_once')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='reviewmail',
            trigger=pgtrigger.compiler.Trigger(name='team_never_changes', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."team_id" IS DISTINCT FROM (NEW."team_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='e37e921a24361238e4cdccefa8b2cf4ed984683d', operation='UPDATE', pgid='pgtrigger_team_never_changes_68d4a', table='reflection_reviewmail', when='BEFORE')),
        ),
        fence("reflection_reviewmail"),
    ]
