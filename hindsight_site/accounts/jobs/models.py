"""The row of a job, and the chunks of a file that it takes or makes."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from hindsight_site.accounts.enums import JOB_OPEN, ChunkRole, JobKind, JobStatus
from hindsight_site.accounts.tenancy import TeamForeignKey, TenantModel, team_never_changes, tenant_constraints


class Job(TenantModel):
    """One piece of long work. The row is the truth; the queue only wakes a worker."""

    kind = models.CharField(max_length=16, choices=JobKind)
    arguments = models.JSONField(default=dict, blank=True)  # shown to whoever may see the job
    sealed = models.BinaryField(null=True, blank=True)  # arguments that nobody may read; gone at the end
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )  # who asked; neither of the two: the schedule
    token = TeamForeignKey("accounts.ApiToken", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")

    status = models.CharField(max_length=9, choices=JobStatus, default=JobStatus.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)  # counted at the claim, so a death counts
    fence = models.PositiveIntegerField(default=0)  # grows at each claim; a stale worker's write is refused
    lease_until = models.DateTimeField(null=True, blank=True)
    run_after = models.DateTimeField(default=timezone.now)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cursor = models.JSONField(default=dict, blank=True)  # where the next turn goes on

    done = models.PositiveBigIntegerField(default=0)  # of `total`; what they count is said in `doing`
    total = models.PositiveBigIntegerField(default=0)  # 0: not known yet
    doing = models.CharField(max_length=80, blank=True, default="")
    result = models.JSONField(default=dict, blank=True)  # counts and reasons; no memory text
    error = models.CharField(max_length=500, blank=True, default="")

    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)  # the last claim
    begun_at = models.DateTimeField(null=True, blank=True)  # the first
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [*tenant_constraints("job", token="accounts_apitoken")]  # noqa: S106 - a table name
        indexes = [
            models.Index(fields=["team", "-created_at", "-id"], name="job_newest"),
            models.Index(fields=["team", "kind", "-created_at"], name="job_of_kind"),
            models.Index(
                fields=["team", "run_after"],
                name="job_due",
                condition=Q(status__in=[status.value for status in JOB_OPEN]),
            ),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} ({self.status})"

    @property
    def is_open(self) -> bool:
        """Whether it waits or is at work."""
        return self.status in JOB_OPEN

    @property
    def asked_by(self) -> str:
        """Who asked for it, in words."""
        if self.person is not None:
            return str(self.person)
        if self.token is not None:
            return f"{self.token.name} (hs_{self.token.prefix}_…)"
        return "the schedule"


class JobChunk(TenantModel):
    """A piece of a job's file, compressed and sealed (`accounts.sealing`), gone after `expires_at`."""

    job = TeamForeignKey(Job, on_delete=models.CASCADE, related_name="chunks")
    role = models.CharField(max_length=6, choices=ChunkRole)
    number = models.PositiveIntegerField()
    data = models.BinaryField()
    size = models.PositiveIntegerField()  # bytes before compression
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            *tenant_constraints("jobchunk", job="accounts_job"),
            models.UniqueConstraint(fields=["team", "job", "role", "number"], name="jobchunk_once"),
        ]
        indexes = [models.Index(fields=["team", "expires_at"], name="jobchunk_age")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.job_id} {self.role} {self.number}"
