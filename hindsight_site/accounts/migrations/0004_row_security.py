"""Tables of a team are visible to that team only; a person sees their memberships, a token itself."""

from django.db import migrations

from hindsight_site.accounts.row_security import PERSON, PRESENTED, fence, gate


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_limits")]

    operations = [
        *(
            fence(f"accounts_{name}")
            for name in ("membership", "invitation", "agent", "apitoken", "auditevent", "idempotencykey", "teamusage")
        ),
        gate("accounts_membership", "own_membership", f"user_id = {PERSON}"),
        gate("accounts_apitoken", "presented_token", f"prefix = {PRESENTED}"),
    ]
