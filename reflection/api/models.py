"""The team's own model over REST."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.decorators import method_decorator
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.accounts.permissions import check_whole_team
from hindsight_site.accounts.tenancy import team_transaction
from hindsight_site.api.views import TokenView, read_input
from hindsight_site.refusals import NotFound
from reflection import model_choice
from reflection.distill.errors import DistillError
from reflection.models import TeamModel

ADMIN = TokenScope.ADMIN
MOST = 2_000_000_000


class ModelIn(serializers.Serializer):
    base_url = serializers.CharField(max_length=500, help_text="Above /chat/completions, such as https://…/v1.")
    api_key = serializers.CharField(
        max_length=500, required=False, allow_blank=True, help_text="Left out: stays as it is. Empty: none."
    )
    model = serializers.CharField(max_length=120)
    model_strong = serializers.CharField(
        max_length=120, required=False, allow_blank=True, default="", help_text="For failed and long traces."
    )
    price_in = serializers.FloatField(min_value=0, max_value=10_000, required=False, default=0.0)
    price_out = serializers.FloatField(min_value=0, max_value=10_000, required=False, default=0.0)
    run_tokens = serializers.IntegerField(
        min_value=0, max_value=MOST, required=False, default=0, help_text="Of one reflection at most; 0: the site's."
    )


class ModelOut(serializers.ModelSerializer):
    has_key = serializers.SerializerMethodField(help_text="Whether a key is kept. It is never shown.")

    class Meta:
        model = TeamModel
        fields = [*model_choice.FIELDS, "has_key", "updated_at"]

    def get_has_key(self, own: TeamModel) -> bool:
        return own.sealed_key is not None


class TriedOut(serializers.Serializer):
    works = serializers.BooleanField()
    problem = serializers.CharField(help_text="What is wrong, in words; empty when it works.")


class ModelView(TokenView):
    may_be_missing = True
    token_scopes = {"GET": ADMIN, "PUT": ADMIN, "DELETE": ADMIN}

    @extend_schema(operation_id="model_read", responses=ModelOut)
    def get(self, request: Request) -> Response:
        """The team's own model, without its key."""
        return Response(ModelOut(_own(_team_caller(self, request))).data)

    @extend_schema(operation_id="model_set", request=ModelIn, responses=ModelOut)
    def put(self, request: Request) -> Response:
        """Let the team's own model look back from now on. A key is kept encrypted, and only for this address."""
        caller = _team_caller(self, request)
        wanted: dict[str, Any] = read_input(ModelIn, request.data)
        return Response(ModelOut(model_choice.set_model(team=caller.team, by=caller.actor, **wanted)).data)

    @extend_schema(operation_id="model_drop", responses={204: None})
    def delete(self, request: Request) -> Response:
        """Go back to the site's model, or to the rules where there is none."""
        caller = _team_caller(self, request)
        model_choice.drop_model(team=caller.team, by=caller.actor)
        return Response(status=204)


@method_decorator(transaction.non_atomic_requests, name="dispatch")
class ModelTestView(TokenView):
    """Calls out while no transaction is open."""

    token_scopes = {"POST": ADMIN}

    @extend_schema(operation_id="model_test", request=None, responses=TriedOut)
    def post(self, request: Request) -> Response:
        """Ask the team's own model for one word."""
        caller = _team_caller(self, request)
        with team_transaction(caller.team):
            _own(caller)
            try:
                endpoint, problem = model_choice.endpoint_of(caller.team), ""
            except DistillError as error:
                endpoint, problem = None, str(error)
        problem = model_choice.try_out(endpoint) if endpoint else problem
        return Response({"works": not problem, "problem": problem})


def _team_caller(view: TokenView, request: Request) -> Caller:
    caller = view.caller(request)
    check_whole_team(caller.agent, "see or change the team's model")
    return caller


def _own(caller: Caller) -> TeamModel:
    own = model_choice.of(caller.team)
    if own is None:
        raise NotFound("This team has no model of its own.", code="model_not_found")
    return own
