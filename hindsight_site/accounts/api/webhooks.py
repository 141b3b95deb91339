"""Webhooks over REST: which addresses are told of what, and what became of each message."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.authentication import Caller
from hindsight_site.accounts.enums import TokenScope
from hindsight_site.accounts.models import Webhook, WebhookDelivery
from hindsight_site.accounts.permissions import check_whole_team
from hindsight_site.accounts.webhooks import actions, delivering
from hindsight_site.api.fields import ObjectField
from hindsight_site.api.idempotency import idempotent
from hindsight_site.api.views import TokenView, page, read_input
from hindsight_site.refusals import NotFound

ADMIN = TokenScope.ADMIN
EVENTS = [(event.value, event.label) for event in actions.OFFERED]
ONCE = "In this answer only. Signs each message, as standardwebhooks.com describes."


class WebhookIn(serializers.Serializer):
    url = serializers.CharField(max_length=500)
    events = serializers.ListField(child=serializers.ChoiceField(choices=EVENTS), min_length=1)
    description = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")


class WebhookChange(serializers.Serializer):
    url = serializers.CharField(max_length=500, required=False)
    events = serializers.ListField(child=serializers.ChoiceField(choices=EVENTS), min_length=1, required=False)
    description = serializers.CharField(max_length=200, required=False, allow_blank=True)
    works = serializers.BooleanField(required=False, help_text="Switch it on or off.")


class WebhookOut(serializers.ModelSerializer):
    works = serializers.BooleanField(help_text="Whether it is told anything.")
    events = serializers.ListField(child=serializers.ChoiceField(choices=EVENTS))

    class Meta:
        model = Webhook
        fields = ["id", "url", "events", "description", "works", "disabled_at", "disabled_because", "created_at"]


class WebhookMade(WebhookOut):
    secret = serializers.CharField(help_text=ONCE)

    class Meta(WebhookOut.Meta):
        fields = [*WebhookOut.Meta.fields, "secret"]


class SecretOut(serializers.Serializer):
    secret = serializers.CharField(help_text=ONCE)


class CallbackSecretOut(serializers.Serializer):
    secret = serializers.CharField(help_text="Signs the messages to every callback_url of this team.")


class DeliveryOut(serializers.ModelSerializer):
    payload = ObjectField(help_text="What was sent, without its id.")

    class Meta:
        model = WebhookDelivery
        fields = [
            "id", "event", "url", "payload", "status", "attempts", "response_status", "error", "created_at",
            "run_after", "finished_at",
        ]  # fmt: skip


class WebhooksView(TokenView):
    token_scopes = {"GET": ADMIN, "POST": ADMIN}
    secret: str | None = None

    @extend_schema(operation_id="webhooks_list", responses=WebhookOut(many=True))
    def get(self, request: Request) -> Response:
        """The team's webhooks, newest first."""
        rows = Webhook.objects.of(team_caller(self, request).team)
        return page(request, rows, lambda found: WebhookOut(found, many=True).data)

    @extend_schema(operation_id="webhooks_create", request=WebhookIn, responses={201: WebhookMade})
    def post(self, request: Request) -> Response:
        """Create a webhook. The secret is in this answer only."""
        answer = self.create(request)
        answer.data = {**answer.data, "secret": self.secret}
        answer["Cache-Control"] = "no-store"
        return answer

    @idempotent
    def create(self, request: Request) -> Response:
        caller = team_caller(self, request)
        wanted = read_input(WebhookIn, request.data)
        webhook, self.secret = actions.create_webhook(team=caller.team, by=caller.actor, **wanted)
        return Response(WebhookOut(webhook).data, status=201)


class WebhookView(TokenView):
    token_scopes = {"GET": ADMIN, "PATCH": ADMIN, "DELETE": ADMIN}

    @extend_schema(operation_id="webhooks_read", responses=WebhookOut)
    def get(self, request: Request, webhook_id: uuid.UUID) -> Response:
        """One webhook, without its secret."""
        return Response(WebhookOut(find_webhook(team_caller(self, request), webhook_id)).data)

    @extend_schema(operation_id="webhooks_change", request=WebhookChange, responses=WebhookOut)
    def patch(self, request: Request, webhook_id: uuid.UUID) -> Response:
        """Change its address, its events or its description, or switch it on or off."""
        caller = team_caller(self, request)
        wanted: dict[str, Any] = read_input(WebhookChange, request.data)
        webhook = find_webhook(caller, webhook_id)
        webhook = actions.change_webhook(team=caller.team, by=caller.actor, webhook=webhook, **wanted)
        return Response(WebhookOut(webhook).data)

    @extend_schema(operation_id="webhooks_delete", responses={204: None})
    def delete(self, request: Request, webhook_id: uuid.UUID) -> Response:
        """Delete a webhook with its log."""
        caller = team_caller(self, request)
        actions.delete_webhook(team=caller.team, by=caller.actor, webhook=find_webhook(caller, webhook_id))
        return Response(status=204)


class WebhookSecretView(TokenView):
    token_scopes = {"POST": ADMIN}

    @extend_schema(operation_id="webhooks_rotate", request=None, responses=SecretOut)
    def post(self, request: Request, webhook_id: uuid.UUID) -> Response:
        """Give the webhook a new signing secret; the former signs nothing from now on."""
        caller = team_caller(self, request)
        webhook = find_webhook(caller, webhook_id)
        secret = actions.rotate_secret(team=caller.team, by=caller.actor, webhook=webhook)
        return Response({"secret": secret}, headers={"Cache-Control": "no-store"})


class WebhookPingView(TokenView):
    token_scopes = {"POST": ADMIN}

    @extend_schema(operation_id="webhooks_ping", request=None, responses={202: DeliveryOut})
    def post(self, request: Request, webhook_id: uuid.UUID) -> Response:
        """Send a test message."""
        caller = team_caller(self, request)
        webhook = find_webhook(caller, webhook_id)
        delivery = actions.ping(team=caller.team, by=caller.actor, webhook=webhook)
        return Response(DeliveryOut(delivery).data, status=202, headers=_location(delivery))


class DeliveriesView(TokenView):
    token_scopes = {"GET": ADMIN}

    @extend_schema(operation_id="webhooks_deliveries", responses=DeliveryOut(many=True))
    def get(self, request: Request, webhook_id: uuid.UUID) -> Response:
        """What was sent to a webhook in the last month, newest first."""
        caller = team_caller(self, request)
        rows = WebhookDelivery.objects.of(caller.team).filter(webhook=find_webhook(caller, webhook_id))
        return page(request, rows, lambda found: DeliveryOut(found, many=True).data)


class AllDeliveriesView(TokenView):
    token_scopes = {"GET": ADMIN}

    @extend_schema(operation_id="deliveries_list", responses=DeliveryOut(many=True))
    def get(self, request: Request) -> Response:
        """What was sent to every webhook and callback address in the last month, newest first."""
        rows = WebhookDelivery.objects.of(team_caller(self, request).team)
        return page(request, rows, lambda found: DeliveryOut(found, many=True).data)


class DeliveryView(TokenView):
    token_scopes = {"GET": ADMIN}

    @extend_schema(operation_id="deliveries_read", responses=DeliveryOut)
    def get(self, request: Request, delivery_id: uuid.UUID) -> Response:
        """One message, and what became of it."""
        return Response(DeliveryOut(find_delivery(team_caller(self, request), delivery_id)).data)


class RedeliverView(TokenView):
    token_scopes = {"POST": ADMIN}

    @extend_schema(operation_id="deliveries_redeliver", request=None, responses={202: DeliveryOut})
    def post(self, request: Request, delivery_id: uuid.UUID) -> Response:
        """Send a message that has ended once more."""
        caller = team_caller(self, request)
        delivery = find_delivery(caller, delivery_id)
        again = actions.redeliver(team=caller.team, by=caller.actor, delivery=delivery)
        return Response(DeliveryOut(again).data, status=202, headers=_location(again))


class CallbackSecretView(TokenView):
    token_scopes = {"GET": ADMIN}

    @extend_schema(operation_id="webhooks_callback_secret", responses=CallbackSecretOut)
    def get(self, request: Request) -> Response:
        """The secret that signs messages to the `callback_url` of a trace."""
        secret = delivering.callback_secret(team_caller(self, request).team)
        return Response({"secret": secret}, headers={"Cache-Control": "no-store"})


def team_caller(view: TokenView, request: Request) -> Caller:
    """The caller; a token bound to an agent may not see what the whole team is told. Raises `Forbidden`."""
    caller = view.caller(request)
    check_whole_team(caller.agent, "see or change what the whole team is told")
    return caller


def find_webhook(caller: Caller, webhook_id: uuid.UUID) -> Webhook:
    """Return a webhook of the caller's team, or raise `NotFound`."""
    webhook = Webhook.objects.of(caller.team).filter(pk=webhook_id).first()
    if webhook is None:
        raise NotFound("There is no such webhook.", code="webhook_not_found")
    return webhook


def find_delivery(caller: Caller, delivery_id: uuid.UUID) -> WebhookDelivery:
    """Return a delivery of the caller's team, or raise `NotFound`."""
    delivery = WebhookDelivery.objects.of(caller.team).select_related("webhook").filter(pk=delivery_id).first()
    if delivery is None:
        raise NotFound("There is no such delivery.", code="delivery_not_found")
    return delivery


def _location(delivery: WebhookDelivery) -> dict[str, str]:
    return {"Location": f"/api/v1/deliveries/{delivery.pk}"}
