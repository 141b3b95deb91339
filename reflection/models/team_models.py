"""A team's own model: where it is, with which key, and how much of it one run may use."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.utils import timezone

from hindsight_site.accounts.tenancy import TenantModel, team_never_changes, tenant_constraints


class TeamModel(TenantModel):
    """At most one of each team. Without it the site's model distils, or the rules where there is none."""

    base_url = models.URLField(max_length=500)
    sealed_key = models.BinaryField(null=True, blank=True)  # accounts.sealing; None: the endpoint wants none
    model = models.CharField(max_length=120)
    model_strong = models.CharField(max_length=120, blank=True, default="")  # for failed and long traces
    price_in = models.FloatField(default=0.0, validators=[MinValueValidator(0)])  # US dollars per million tokens
    price_out = models.FloatField(default=0.0, validators=[MinValueValidator(0)])
    run_tokens = models.PositiveIntegerField(default=0)  # of one run at most; 0: the site's limit
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            *tenant_constraints("teammodel"),
            models.UniqueConstraint(fields=["team"], name="teammodel_one_of_a_team"),
        ]
        triggers = [team_never_changes()]

    def __str__(self) -> str:
        return f"{self.model} at {self.base_url}"
