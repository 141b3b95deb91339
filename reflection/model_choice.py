"""Which model looks back for a team: its own, else the site's, else none (then the rules do it)."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from hindsight_site import outbound
from hindsight_site.accounts import audit, quotas, sealing
from hindsight_site.accounts.audit import Actor
from hindsight_site.accounts.models import Team
from hindsight_site.refusals import FieldError, Invalid
from reflection.distill.endpoint import ModelEndpoint
from reflection.distill.errors import DistillError
from reflection.models import TeamModel

SEALED_KEY = "model key"
FIELDS = ("base_url", "model", "model_strong", "price_in", "price_out", "run_tokens")
TRY_SECONDS = 10.0
KEY_LOST = "The key of the team's model cannot be read any more: enter it again."
_SAID = {
    401: "The key was refused.",
    403: "The key may not use this model.",
    404: "There is no such model, or the address is not the one above /chat/completions.",
    429: "The key is right; the endpoint says that it is called too often, or that its credit is used up.",
}


def endpoint_of(team: Team) -> ModelEndpoint | None:
    """Return the model that distils for a team, or None for the rules. Call inside the team's transaction.

    Raises `DistillError` when its key was sealed with another SECRET_KEY.
    """
    own = of(team)
    if own is not None:
        return ModelEndpoint(
            base_url=own.base_url,
            api_key=_key(own),
            model=own.model,
            model_strong=own.model_strong or own.model,
            timeout_seconds=settings.LLM_TIMEOUT_SECONDS,
            price_in=own.price_in,
            price_out=own.price_out,
            run_tokens=own.run_tokens or settings.LLM_RUN_TOKENS,
            is_teams_own=True,
        )
    if not settings.LLM_BASE_URL:
        return None
    return ModelEndpoint(
        base_url=settings.LLM_BASE_URL,
        api_key=settings.LLM_API_KEY,
        model=settings.LLM_MODEL,
        model_strong=settings.LLM_MODEL_STRONG,
        timeout_seconds=settings.LLM_TIMEOUT_SECONDS,
        price_in=settings.LLM_PRICE_IN,
        price_out=settings.LLM_PRICE_OUT,
        run_tokens=settings.LLM_RUN_TOKENS,
    )


def must_do_without(team: Team, endpoint: ModelEndpoint | None) -> bool:
    """Whether the rules must stand in: the site's model is used up for this month. A team's own is its own affair."""
    return endpoint is not None and not endpoint.is_teams_own and quotas.model_tokens_are_used_up(team)


def of(team: Team) -> TeamModel | None:
    """The team's own model, if it has one."""
    return TeamModel.objects.of(team).first()


@transaction.atomic
def set_model(*, team: Team, by: Actor, api_key: str | None = None, **fields: Any) -> TeamModel:
    """Give the team its own model, or change it. `fields` are those of `FIELDS`; `api_key` None keeps the key.

    Raises `Invalid` for an address that may not be called.
    """
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    own = of(team)
    before = audit.state_of(own) if own else ""
    own = own or TeamModel(team=team)
    moved = own.base_url and fields.get("base_url", own.base_url) != own.base_url
    for name, value in fields.items():
        setattr(own, name, value)
    _check(own)
    if api_key is not None:
        own.sealed_key = sealing.seal(api_key.encode(), team_id=team.pk, purpose=SEALED_KEY) if api_key else None
    elif moved:
        own.sealed_key = None  # a key is not sent to an address that it was not entered for
    own.updated_at = timezone.now()
    own.save()
    audit.record(team=team, by=by, verb="model.set", on=own, before=before, detail={"model": own.model})
    return own


@transaction.atomic
def drop_model(*, team: Team, by: Actor) -> None:
    """Go back to the site's model, or to the rules. Without an own model nothing happens."""
    own = of(team)
    if own is not None:
        audit.record(team=team, by=by, verb="model.dropped", on=own, before=audit.state_of(own), after="")
        own.delete()


def try_out(endpoint: ModelEndpoint) -> str:
    """Ask the model for one word. Returns what is wrong, in words for a person, or "" when it answered."""
    body = {"model": endpoint.model, "messages": [{"role": "user", "content": "Answer with the word yes."}]}
    headers = {"Content-Type": "application/json"}
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    try:
        answer = outbound.send(
            endpoint.base_url.rstrip("/") + "/chat/completions",
            body=json.dumps(body).encode(),
            headers=headers,
            timeout_seconds=TRY_SECONDS,
        )
    except (outbound.NotAllowed, outbound.Unreachable) as error:
        return str(error)
    if answer.status != 200:
        return _SAID.get(answer.status, f"It answered {answer.status}.")
    try:
        json.loads(answer.body)["choices"][0]["message"]
    except (ValueError, LookupError, TypeError):
        return "It answered, but not with a chat completion: is the address the one above /chat/completions?"
    return ""


def _key(own: TeamModel) -> str:
    if own.sealed_key is None:
        return ""
    try:
        return sealing.unseal(bytes(own.sealed_key), team_id=own.team_id, purpose=SEALED_KEY).decode()
    except sealing.Unreadable:
        raise DistillError(KEY_LOST, retryable=False) from None


def _check(own: TeamModel) -> None:
    outbound.check_field(own.base_url, "base_url")
    if not own.model.strip():
        raise Invalid("model must not be empty.", errors=(FieldError("model", "must not be empty.", "required"),))
