"""The forms of the memory API: what comes in, what goes out."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from hindsight_site.accounts.models import Agent
from hindsight_site.api.fields import AwareDateTimeField, ObjectField, TextField
from memories.enums import Kind, ReviewMode, ScopeKind, Status, Tier, Trust
from memories.importance import DEFAULT_IMPORTANCE, IMPORTANCE, importance_of
from memories.models import Evidence, Memory, Relation, Revision, Scope, ScopeGrant
from memories.models.sessions import KEPT_AS

MAX_TAGS = 20


class AgentOut(serializers.ModelSerializer):
    disabled = serializers.SerializerMethodField()

    class Meta:
        model = Agent
        fields = ["slug", "name", "description", "disabled", "created_at"]

    def get_disabled(self, agent: Agent) -> bool:
        return agent.disabled_at is not None


class AgentIn(serializers.Serializer):
    slug = serializers.CharField(max_length=60)
    name = serializers.CharField(max_length=120, required=False, allow_blank=True, default="")
    description = serializers.CharField(max_length=2000, required=False, allow_blank=True, default="")


class AgentChange(serializers.Serializer):
    name = serializers.CharField(max_length=120, required=False)
    description = serializers.CharField(max_length=2000, required=False, allow_blank=True)
    disabled = serializers.BooleanField(required=False)


class ScopeOut(serializers.ModelSerializer):
    agent: serializers.SlugRelatedField[Agent] = serializers.SlugRelatedField(
        slug_field="slug", read_only=True, allow_null=True
    )

    class Meta:
        model = Scope
        fields = ["slug", "name", "description", "kind", "agent", "review_mode", "created_at"]


class ScopeIn(serializers.Serializer):
    slug = serializers.CharField(max_length=60)
    name = serializers.CharField(max_length=120, required=False, allow_blank=True, default="")
    description = serializers.CharField(max_length=2000, required=False, allow_blank=True, default="")
    kind = serializers.ChoiceField(choices=[ScopeKind.SHARED], default=ScopeKind.SHARED)
    review_mode = serializers.ChoiceField(choices=ReviewMode.choices, default=ReviewMode.SAMPLED)


class ScopeChange(serializers.Serializer):
    name = serializers.CharField(max_length=120, required=False)
    description = serializers.CharField(max_length=2000, required=False, allow_blank=True)
    review_mode = serializers.ChoiceField(choices=ReviewMode.choices, required=False)


class GrantOut(serializers.ModelSerializer):
    agent: serializers.SlugRelatedField[Agent] = serializers.SlugRelatedField(slug_field="slug", read_only=True)

    class Meta:
        model = ScopeGrant
        fields = ["agent", "can_read", "can_write"]


class GrantIn(serializers.Serializer):
    agent = serializers.CharField(max_length=60)
    can_read = serializers.BooleanField(default=True)
    can_write = serializers.BooleanField(default=False)


class LiftOut(serializers.Serializer):
    """How much better tasks ended that adopted it than those that were handed it and did not."""

    value = serializers.FloatField(
        allow_null=True, help_text="Success rate with it minus without; null: too little told."
    )
    adopted = serializers.IntegerField(help_text="Recalls that adopted it and whose end is known.")
    adopted_succeeded = serializers.IntegerField()
    left_aside = serializers.IntegerField(help_text="Recalls that did not, and whose end is known.")
    left_aside_succeeded = serializers.IntegerField()


class MemoryOut(serializers.ModelSerializer):
    scope = serializers.CharField(source="scope.slug")
    agent = serializers.CharField(source="agent.slug", allow_null=True, default=None)
    contested = serializers.SerializerMethodField()
    lift = serializers.SerializerMethodField()

    class Meta:
        model = Memory
        fields = [
            "id", "revision", "scope", "agent", "kind", "tier", "status", "content", "snippet", "structure",
            "tags", "metadata", "environment", "failure_class", "confidence", "trust", "weight", "importance",
            "support_count", "needs_review", "pinned", "approved_at", "access_count", "last_accessed_at",
            "unused_streak", "reuse_count", "reuse_success_count", "created_at", "updated_at", "valid_from",
            "valid_until", "expires_at", "occurred_at", "actor", "session_id", "sequence", "source",
            "distiller", "model", "prompt_version", "contested", "lift",
        ]  # fmt: skip

    def get_contested(self, memory: Memory) -> bool:
        return memory.pk in self.context.get("contested", ())

    @extend_schema_field(LiftOut(allow_null=True))
    def get_lift(self, memory: Memory) -> dict[str, Any] | None:
        lift = self.context.get("lifts", {}).get(memory.pk)
        return None if lift is None else LiftOut(lift).data


@extend_schema_field(
    {
        "oneOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "enum": list(IMPORTANCE)}],
        "default": DEFAULT_IMPORTANCE,
    }
)
class ImportanceField(serializers.Field):
    """What working memory is kept by when it is trimmed: one of the words, or a number from 0 to 1."""

    default_error_messages = {"not_one": f"must be one of {', '.join(IMPORTANCE)}, or a number from 0 to 1."}

    def to_internal_value(self, data: Any) -> float:
        try:
            return importance_of(data)
        except ValueError:
            self.fail("not_one")

    def to_representation(self, value: float) -> float:
        return value


class MemoryIn(serializers.Serializer):
    content = TextField()
    kind = serializers.ChoiceField(choices=Kind.choices)
    tier = serializers.ChoiceField(choices=Tier.choices, default=Tier.EPISODIC)
    scope = serializers.CharField(max_length=80, required=False, allow_blank=True, default="")
    structure = ObjectField(required=False, default=dict)
    confidence = serializers.FloatField(min_value=0, max_value=1, default=0.5)
    importance = ImportanceField(default=DEFAULT_IMPORTANCE)
    tags = serializers.ListField(
        child=serializers.CharField(max_length=60), max_length=MAX_TAGS, required=False, default=list
    )
    metadata = ObjectField(required=False, default=dict)
    environment = ObjectField(required=False, default=dict)
    ttl_seconds = serializers.IntegerField(
        min_value=1, max_value=10 * 365 * 86400, required=False, allow_null=True, default=None
    )
    valid_from = AwareDateTimeField(required=False, allow_null=True, default=None)
    valid_until = AwareDateTimeField(required=False, allow_null=True, default=None)
    occurred_at = AwareDateTimeField(required=False, allow_null=True, default=None)
    actor = serializers.CharField(max_length=120, required=False, allow_blank=True, default="")
    session_id = serializers.CharField(max_length=120, required=False, allow_blank=True, default="", help_text=KEPT_AS)
    sequence = serializers.IntegerField(min_value=0, max_value=2**31 - 1, required=False, allow_null=True, default=None)
    agent = serializers.CharField(max_length=60, required=False, allow_null=True, default=None)


class BulkIn(serializers.Serializer):
    memories = serializers.ListField(child=ObjectField(), min_length=1, max_length=500)


class BulkResult(serializers.Serializer):
    status = serializers.ChoiceField(choices=["created", "merged", "refused"])
    id = serializers.UUIDField(required=False)
    merged_into = serializers.UUIDField(required=False)
    error = serializers.CharField(required=False)


class BulkOut(serializers.Serializer):
    results = BulkResult(many=True)


class MemoryWritten(MemoryOut):
    merged_into = serializers.UUIDField(required=False, allow_null=True, default=None)
    masked = serializers.ListField(
        child=serializers.CharField(),
        help_text="Kinds of personal data and secrets in the content that were replaced by placeholders.",
    )

    class Meta(MemoryOut.Meta):
        fields = [*MemoryOut.Meta.fields, "merged_into", "masked"]


class MemoryChange(serializers.Serializer):
    content = TextField(required=False)
    structure = ObjectField(required=False)
    tags = serializers.ListField(child=serializers.CharField(max_length=60), max_length=MAX_TAGS, required=False)
    reason = serializers.CharField(max_length=300, required=False, allow_blank=True, default="")
    revision = serializers.IntegerField(min_value=1, max_value=2**31 - 1, required=False)


class Verb(serializers.Serializer):
    reason = serializers.CharField(max_length=300, required=False, allow_blank=True, default="")
    note = serializers.CharField(max_length=2000, required=False, allow_blank=True, default="")


class ForgetIn(serializers.Serializer):
    reason = serializers.CharField(max_length=300, required=False, allow_blank=True, default="")


class RollbackIn(serializers.Serializer):
    reason = serializers.CharField(max_length=300, required=False, allow_blank=True, default="")
    to = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    revision = serializers.IntegerField(min_value=1, max_value=2**31 - 1, required=False)


class PinIn(serializers.Serializer):
    pinned = serializers.BooleanField(default=True)


class EvidenceOut(serializers.ModelSerializer):
    trace = serializers.UUIDField(source="trace_id")

    class Meta:
        model = Evidence
        fields = ["trace", "step_sequence", "role", "start", "end", "quote", "removed_at"]


class RevisionOut(serializers.ModelSerializer):
    class Meta:
        model = Revision
        fields = [
            "number", "content", "structure", "tags", "tier", "confidence", "valid_from", "valid_until",
            "actor_kind", "actor_label", "reason",
        ]  # fmt: skip


class RelationOut(serializers.ModelSerializer):
    source = serializers.UUIDField(source="source_id")  # type: ignore[assignment] # a field of the answer
    target = serializers.UUIDField(source="target_id")

    class Meta:
        model = Relation
        fields = ["source", "target", "kind", "weight", "note", "created_at", "settled_at"]


class RecallOfMemory(serializers.Serializer):
    recall_id = serializers.UUIDField(source="recall.pk")
    agent = serializers.CharField(source="recall.agent.slug", allow_null=True, default=None)
    at = serializers.DateTimeField(source="recall.created_at")
    query = serializers.CharField(source="recall.query")
    revision = serializers.IntegerField()
    rank = serializers.IntegerField()
    score = serializers.FloatField()
    relevance = serializers.FloatField()


class RecallIn(serializers.Serializer):
    query = TextField()
    agent = serializers.CharField(max_length=60, required=False, allow_null=True, default=None)
    session_id = serializers.CharField(max_length=120, required=False, allow_blank=True, default="", help_text=KEPT_AS)
    scopes = serializers.ListField(
        child=serializers.CharField(max_length=80),
        min_length=1,
        max_length=50,
        required=False,
        default=None,
        allow_null=True,
    )
    kinds = serializers.ListField(child=serializers.ChoiceField(choices=Kind.choices), required=False, default=list)
    tiers = serializers.ListField(child=serializers.ChoiceField(choices=Tier.choices), required=False, default=list)
    tags = serializers.ListField(
        child=serializers.CharField(max_length=60), max_length=MAX_TAGS, required=False, default=list
    )
    environment = ObjectField(required=False, default=dict)
    top_k = serializers.IntegerField(min_value=1, max_value=50, default=5)
    min_relevance = serializers.FloatField(min_value=0, max_value=1, required=False, allow_null=True, default=None)
    token_budget = serializers.IntegerField(min_value=50, max_value=20_000, default=800)
    include_archived = serializers.BooleanField(default=False)
    as_of = AwareDateTimeField(required=False, allow_null=True, default=None)
    explain = serializers.BooleanField(default=False)
    at = AwareDateTimeField(required=False, allow_null=True, default=None)
    rerank = serializers.BooleanField(
        default=False, help_text="Have the server's language model look at the best ones; slower."
    )


class PartsOut(serializers.Serializer):
    vector = serializers.FloatField()
    keyword = serializers.FloatField()
    context = serializers.FloatField(help_text="From the turns around it, its session and who speaks.")
    session = serializers.FloatField(help_text="Share of the query that its session covers as a whole, in context too.")
    time = serializers.FloatField(help_text="From a time that the query names.")
    exact = serializers.FloatField(help_text="Share of the query's identifiers that it holds.")
    recency = serializers.FloatField()
    confidence = serializers.FloatField()
    weight = serializers.FloatField()
    heat = serializers.FloatField()


class HitOut(serializers.Serializer):
    memory = serializers.UUIDField()
    revision = serializers.IntegerField()
    scope = serializers.CharField()
    kind = serializers.ChoiceField(choices=Kind.choices)
    tier = serializers.ChoiceField(choices=Tier.choices)
    status = serializers.ChoiceField(choices=Status.choices)
    trust = serializers.ChoiceField(choices=Trust.choices)
    score = serializers.FloatField()
    relevance = serializers.FloatField()
    parts = PartsOut()
    snippet = serializers.CharField()
    contested = serializers.BooleanField(help_text="It contradicts another live memory, and nobody has settled it.")
    shared = serializers.BooleanField(help_text="It comes from a shared scope.")
    warning = serializers.BooleanField(help_text="It tells what not to do.")


class RecallOut(serializers.Serializer):
    recall_id = serializers.UUIDField()
    status = serializers.ChoiceField(choices=["matched", "no_match"])
    hits = HitOut(many=True)
    context = serializers.CharField(allow_blank=True)  # type: ignore[assignment] # a field of the answer
    best_relevance = serializers.FloatField()
    searched_scopes = serializers.ListField(child=serializers.CharField())
    degraded = serializers.BooleanField()
    late = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Of a degraded answer: what was left out."
    )
    took_ms = serializers.FloatField()
    filtered = serializers.DictField(
        child=serializers.IntegerField(),
        required=False,
        help_text="With explain: how many candidates each rule left out.",
    )


class FeedbackItemIn(serializers.Serializer):
    memory = serializers.UUIDField()
    adopted = serializers.BooleanField()
    success = serializers.BooleanField(
        required=False,
        allow_null=True,
        default=None,
        help_text="How the task ended. Every use is counted; confidence hears each agent once a day per memory, and "
        "feedback alone lifts it no higher than the cap of the memory's trust.",
    )
    note = serializers.CharField(max_length=1000, required=False, allow_blank=True, default="")


class FeedbackIn(serializers.Serializer):
    recall_id = serializers.UUIDField()
    items = FeedbackItemIn(many=True, required=False)
    success = serializers.BooleanField(required=False, allow_null=True, default=None)

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        if not data.get("items") and data.get("success") is None:
            raise serializers.ValidationError("Send items, or success for everything that was adopted.")
        return data


class FeedbackOut(serializers.Serializer):
    recall_id = serializers.UUIDField()
    recorded = serializers.IntegerField()


class MeOut(serializers.Serializer):
    team = serializers.CharField()
    agent = serializers.CharField(allow_null=True)
    token = serializers.CharField()
    token_scopes = serializers.ListField(child=serializers.CharField())
    expires_at = serializers.DateTimeField(allow_null=True)
    searches = serializers.ListField(child=serializers.CharField())
    writes_to = serializers.CharField()
