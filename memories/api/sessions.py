"""The working memory of a session over REST."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hindsight_site.accounts.enums import TokenScope
from hindsight_site.api.pagination import read_whole
from hindsight_site.api.views import TokenView
from hindsight_site.refusals import FieldError, Invalid
from memories import working
from memories.importance import IMPORTANCE, word_of
from memories.safety.sessions import stored_session_id

MOST_SESSION_CHARS = 120
LEAST_BUDGET, DEFAULT_BUDGET, MOST_BUDGET = 50, 800, 20_000


class WorkingItemOut(serializers.Serializer):
    memory = serializers.UUIDField()
    revision = serializers.IntegerField()
    content = serializers.CharField()
    importance = serializers.FloatField()
    importance_word = serializers.ChoiceField(choices=list(IMPORTANCE))
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)


class SessionContextOut(serializers.Serializer):
    session_id = serializers.CharField()
    context = serializers.CharField(  # type: ignore[assignment] # a field
        allow_blank=True, help_text="The text for the prompt; empty when there is nothing."
    )
    items = WorkingItemOut(many=True, help_text="What is in the context, the most important first.")
    tokens = serializers.IntegerField(help_text="An upper estimate for the context.")
    token_budget = serializers.IntegerField()
    left_out = serializers.IntegerField(help_text="Items that did not fit; none of them matters more than one inside.")


class SessionContextView(TokenView):
    token_scopes = {"GET": TokenScope.MEMORY_READ}

    @extend_schema(
        operation_id="sessions_context",
        parameters=[
            OpenApiParameter("session_id", str, OpenApiParameter.PATH),
            OpenApiParameter(
                "token_budget",
                {"type": "integer", "minimum": LEAST_BUDGET, "maximum": MOST_BUDGET, "default": DEFAULT_BUDGET},
            ),
        ],
        responses=SessionContextOut,
    )
    def get(self, request: Request, session_id: str) -> Response:
        """The working memory of a session, packed: goal before constraint before fact before the rest."""
        caller = self.caller(request)
        if "\0" in session_id or len(session_id) > MOST_SESSION_CHARS:
            message = f"must be at most {MOST_SESSION_CHARS} characters, and no NUL."
            raise Invalid(f"session_id {message}", errors=(FieldError("session_id", message),))
        budget = read_whole(request, "token_budget", default=DEFAULT_BUDGET, low=LEAST_BUDGET, high=MOST_BUDGET)
        packed = working.pack(working.items_of(caller.team, caller.agent, session_id), budget)
        items = [
            {
                "memory": str(item.memory),
                "revision": item.revision,
                "content": item.content,
                "importance": item.importance,
                "importance_word": word_of(item.importance),
                "created_at": item.created_at,
                "expires_at": item.expires_at,
            }
            for item in packed.items
        ]
        return Response({
            "session_id": stored_session_id(session_id),
            "context": packed.context,
            "items": items,
            "tokens": packed.tokens,
            "token_budget": budget,
            "left_out": packed.left_out,
        })  # fmt: skip
