"""Teams, people, agents, credentials, and the audit of who did what."""

from __future__ import annotations

from django.contrib.auth.base_user import BaseUserManager
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

from hindsight_site.accounts.audit_models import AuditReason as AuditReason
from hindsight_site.accounts.enums import ActorKind, DeletionState, KeyState, Spent, TeamRole, Theme
from hindsight_site.accounts.ids import new_id
from hindsight_site.accounts.jobs.models import Job as Job
from hindsight_site.accounts.jobs.models import JobChunk as JobChunk
from hindsight_site.accounts.oauth_models import AuthorizationCode as AuthorizationCode
from hindsight_site.accounts.oauth_models import ConnectedClient as ConnectedClient
from hindsight_site.accounts.oauth_models import RefreshToken as RefreshToken
from hindsight_site.accounts.tenancy import (
    TeamForeignKey,
    TeamManager,
    TenantModel,
    append_only,
    team_never_changes,
    tenant_constraints,
)
from hindsight_site.accounts.webhooks.models import Webhook as Webhook
from hindsight_site.accounts.webhooks.models import WebhookDelivery as WebhookDelivery


class UserManager(BaseUserManager["User"]):
    """People are known by their e-mail address."""

    def create_user(self, email: str, password: str | None = None, **fields: object) -> User:
        """Create a person whose address whoever runs the site vouches for. Sign-ups go another way."""
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        rows = user.emailaddress_set  # type: ignore[attr-defined] # allauth's
        rows.create(email=user.email.lower(), verified=True, primary=True)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: object) -> User:
        return self.create_user(email, password, **{**fields, "is_staff": True, "is_superuser": True})

    def get_by_natural_key(self, email: str | None) -> User:
        return self.get(email__iexact=email)


class User(AbstractUser):
    """A person. Not a tenant row: one person can be in several teams."""

    username = None  # type: ignore[assignment]
    email = models.EmailField("e-mail address", unique=True)
    time_zone = models.CharField(max_length=64, default="UTC")
    theme = models.CharField(max_length=8, choices=Theme, blank=True, default=Theme.SYSTEM)
    mails_off = ArrayField(models.CharField(max_length=20), default=list, blank=True)  # enums.MailKind

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = []  # noqa: RUF012 - Django's protocol

    objects = UserManager()  # type: ignore[misc,assignment]

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="user_email")]

    def __str__(self) -> str:
        return self.get_full_name() or self.email


class Team(models.Model):
    """The tenant. Everything else belongs to exactly one team."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    time_zone = models.CharField(max_length=64, default="UTC")
    created_at = models.DateTimeField(default=timezone.now)
    suspended_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class Membership(TenantModel):
    """A person in a team, with one role."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=TeamRole)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            *tenant_constraints("membership"),
            models.UniqueConstraint(fields=["team", "user"], name="membership_once"),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.user} ({self.role})"


class Invitation(TenantModel):
    """A person asked by e-mail to join with a role. Written by `invitations` only.

    The mailed link is signed and names team, invitation and `sends`; nothing secret is kept here.
    """

    email = models.EmailField()  # in lower case
    role = models.CharField(max_length=10, choices=TeamRole)
    invited_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    created_at = models.DateTimeField(default=timezone.now)
    sends = models.PositiveSmallIntegerField(default=0)  # only the link of the last mail works
    sent_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            *tenant_constraints("invitation"),
            models.UniqueConstraint(
                fields=["team", "email"],
                condition=models.Q(accepted_at=None, revoked_at=None),
                name="invitation_one_open",
            ),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.email} ({self.role})"


class TeamDeletion(models.Model):
    """The job that deletes a team, and afterwards the record that it did. Written by `deletion` only.

    No foreign key to the team: the row outlives it.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+")
    team_name = models.CharField(max_length=120)
    requested_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+", db_index=False)
    state = models.CharField(max_length=8, choices=DeletionState, default=DeletionState.QUEUED)
    table = models.CharField(max_length=60, blank=True, default="")  # what is being deleted now, in words
    rows_deleted = models.PositiveBigIntegerField(default=0)
    rows_total = models.PositiveBigIntegerField(default=0)  # counted when the job first starts
    attempts = models.PositiveSmallIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = TeamManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "id"], name="teamdeletion_team_id"),
            models.UniqueConstraint(fields=["team"], name="teamdeletion_once"),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.team_name} ({self.state})"


class Agent(TenantModel):
    """A software actor of a team. Has exactly one private scope (see `memories.scopes`)."""

    slug = models.SlugField(max_length=60, db_index=False)
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    disabled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            *tenant_constraints("agent"),
            models.UniqueConstraint(fields=["team", "slug"], name="agent_slug"),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return self.name


class ApiToken(TenantModel):
    """A hashed, revocable, expiring credential of a team, optionally bound to one agent.

    The secret `hs_<8>_<43>` is shown once. `prefix` finds the row before the team is known, so its
    unique constraint is the one that does not start with the team.
    """

    agent = TeamForeignKey(Agent, on_delete=models.CASCADE, null=True, blank=True, related_name="tokens")
    name = models.CharField(max_length=120)
    prefix = models.CharField(max_length=8, unique=True)
    digest = models.BinaryField(max_length=32)  # SHA-256 of the whole secret
    scopes = ArrayField(models.CharField(max_length=20), default=list)
    created_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    # Whom it stands for (a client they connected, a script of theirs): it may no more than their role, and
    # nothing without a membership. Verdicts given with it count as theirs.
    on_behalf_of = models.ForeignKey(
        User, on_delete=models.CASCADE, null=True, blank=True, related_name="+", db_index=False
    )
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)  # written at most once a minute

    class Meta:
        constraints = [*tenant_constraints("apitoken", agent="accounts_agent")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.name} (hs_{self.prefix}_…)"


class AuditEvent(models.Model):
    """Append-only: who did what to what. Holds fingerprints, never memory text.

    No foreign keys: the audit outlives what it speaks of.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    actor_kind = models.CharField(max_length=10, choices=ActorKind)
    actor_id = models.CharField(max_length=64, blank=True, default="")
    actor_label = models.CharField(max_length=254, blank=True, default="")
    verb = models.CharField(max_length=60)  # "memory.approved"
    object_type = models.CharField(max_length=40)
    object_id = models.CharField(max_length=64)
    before = models.CharField(max_length=64, blank=True, default="")  # fingerprints
    after = models.CharField(max_length=64, blank=True, default="")
    detail = models.JSONField(default=dict, blank=True)  # counts, states and reasons; no text
    request_id = models.CharField(max_length=64, blank=True, default="")

    objects = TeamManager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "id"], name="auditevent_team_id")]
        indexes = [
            models.Index(fields=["team", "-at"], name="auditevent_at"),
            models.Index(fields=["team", "object_type", "object_id"], name="auditevent_object"),
            models.Index(fields=["team", "verb", "-at"], name="auditevent_verb"),
            models.Index(fields=["team", "actor_kind", "actor_id", "-at"], name="auditevent_actor"),
            models.Index(fields=["team", "request_id"], name="auditevent_request", condition=~models.Q(request_id="")),
        ]
        triggers = [append_only()]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.verb} {self.object_type} {self.object_id}"


class IdempotencyKey(TenantModel):
    """The answer given to a POST with an `Idempotency-Key`, replayed to the same key and body."""

    token = TeamForeignKey(ApiToken, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    request_digest = models.BinaryField(max_length=32)  # method, path and body
    status_code = models.PositiveSmallIntegerField()
    body = models.JSONField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            *tenant_constraints("idempotencykey", token="accounts_apitoken"),  # noqa: S106 - a table name
            models.UniqueConstraint(fields=["team", "token", "key"], name="idempotencykey_once"),
        ]
        indexes = [models.Index(fields=["team", "created_at"], name="idempotencykey_age")]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return self.key


class SigningKey(models.Model):
    """A key pair that signs access tokens. Not a tenant row: the site signs, not a team.

    Written by `signing_keys` only.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kid = models.CharField(max_length=43, unique=True)  # RFC 7638 thumbprint of the public key
    private_pem = models.TextField(blank=True, default="")  # encrypted; emptied when the key signs no more
    public_jwk = models.JSONField()
    state = models.CharField(max_length=8, choices=KeyState)
    created_at = models.DateTimeField(default=timezone.now)
    activated_at = models.DateTimeField(null=True, blank=True)
    accepted_until = models.DateTimeField(null=True, blank=True)  # set when it begins to retire
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["state"],
                condition=models.Q(state__in=[KeyState.NEXT, KeyState.ACTIVE]),
                name="signingkey_one_next_one_active",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kid[:8]}… ({self.state})"


class TeamUsage(TenantModel):
    """How much of one thing a team has spent in one period. Written by `quotas` only.

    The amount is the sum over the slots: writers at the same time add to different rows, so that none waits
    for another's transaction.
    """

    kind = models.CharField(max_length=12, choices=Spent)
    period = models.DateField()  # the day, or the first day of the month, in UTC
    slot = models.PositiveSmallIntegerField()
    amount = models.PositiveBigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "team usage"
        constraints = [
            *tenant_constraints("teamusage"),
            models.UniqueConstraint(fields=["team", "kind", "period", "slot"], name="teamusage_once"),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.kind} {self.period}: {self.amount}"
