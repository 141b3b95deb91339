"""What people were mailed about the review, so that nobody is mailed the same twice."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from hindsight_site.accounts.enums import MailKind
from hindsight_site.accounts.models import User
from hindsight_site.accounts.tenancy import TenantModel, team_never_changes, tenant_constraints
from reflection.enums import MailStatus


class ReviewMail(TenantModel):
    """One mail of one kind to one person about one thing. Holds no text: that is made when it is sent."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=20, choices=MailKind)
    about = models.CharField(max_length=40)  # a week, or the id of a verdict
    status = models.CharField(max_length=8, choices=MailStatus, default=MailStatus.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    error = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    changed_at = models.DateTimeField(default=timezone.now)  # when it came to where it stands

    class Meta:
        constraints = [
            *tenant_constraints("reviewmail"),
            models.UniqueConstraint(fields=["team", "kind", "about", "user"], name="reviewmail_once"),
        ]
        indexes = [
            models.Index(
                fields=["team", "changed_at"],
                name="reviewmail_open",
                condition=models.Q(status__in=[MailStatus.QUEUED, MailStatus.SENDING]),
            )
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.kind} {self.about} to {self.user_id}"
