"""The forms of the trace and reflection API."""

from __future__ import annotations

from rest_framework import serializers

from hindsight_site.api.fields import AwareDateTimeField, ObjectField, TextField
from memories.models.sessions import KEPT_AS
from reflection.enums import END_STATES, Role, StepKind
from reflection.formats import FORMATS, OWN
from reflection.models import Reflection, Step, Trace

OUTCOMES = [state.value for state in END_STATES]


class StepIn(serializers.Serializer):
    """Documents one step; `reflection.api.steps` reads it. Unknown keys are kept under `extra`."""

    at = AwareDateTimeField(required=False)
    role = serializers.ChoiceField(choices=Role.choices)
    kind = serializers.ChoiceField(choices=StepKind.choices, required=False)
    tool = serializers.CharField(max_length=200, required=False)
    arguments = ObjectField(required=False)
    content = TextField(required=False)
    is_error = serializers.BooleanField(required=False)


class FormatField(serializers.ChoiceField):
    """What the items of `steps` are."""

    def __init__(self) -> None:
        super().__init__(
            choices=FORMATS,
            required=False,
            default=OWN,
            help_text="What `steps` holds: our own steps (hindsight), messages of OpenAI, Anthropic or LangChain, "
            "or OpenTelemetry GenAI spans (otel). One message may become several steps.",
        )


class TraceIn(serializers.Serializer):
    """A task as the agent lived it. `steps` is documented by `StepIn`."""

    agent = serializers.CharField(max_length=60, required=False, allow_null=True, default=None)
    session_id = serializers.CharField(max_length=120, required=False, allow_blank=True, default="", help_text=KEPT_AS)
    task = TextField()
    task_type = serializers.CharField(max_length=120, required=False, allow_blank=True, default="")
    environment = ObjectField(required=False, default=dict)
    outcome = serializers.ChoiceField(choices=OUTCOMES, required=False, allow_null=True, default=None)
    result = TextField(required=False, allow_blank=True, allow_null=True, default="")
    remember = serializers.BooleanField(required=False, default=False)
    callback_url = serializers.URLField(max_length=500, required=False, allow_blank=True, default="")
    metadata = ObjectField(required=False, default=dict)
    format = FormatField()


class TraceDocumented(TraceIn):
    steps = StepIn(many=True, required=False)


class AppendIn(serializers.Serializer):
    sequence = serializers.IntegerField(
        min_value=0,
        max_value=100_000,
        required=False,
        allow_null=True,
        default=None,
        help_text="The number of the first step. Left out: they go to the end.",
    )
    format = FormatField()


class AppendDocumented(AppendIn):
    steps = StepIn(many=True)


class AppendOut(serializers.Serializer):
    id = serializers.UUIDField()
    sequence = serializers.IntegerField(help_text="The number of the first of these steps.")
    step_count = serializers.IntegerField()


class FinishIn(serializers.Serializer):
    outcome = serializers.ChoiceField(choices=OUTCOMES)
    result = TextField(required=False, allow_blank=True, default="")
    remember = serializers.BooleanField(required=False, allow_null=True, default=None)


class ReflectionShort(serializers.ModelSerializer):
    class Meta:
        model = Reflection
        fields = ["id", "status", "reason"]


class TraceWritten(serializers.Serializer):
    id = serializers.UUIDField()
    status = serializers.CharField()
    reflection = ReflectionShort(allow_null=True)


class TraceOut(serializers.ModelSerializer):
    agent = serializers.CharField(source="agent.slug")

    class Meta:
        model = Trace
        fields = [
            "id", "agent", "session_id", "task", "task_type", "environment", "status", "result", "remember",
            "metadata", "step_count", "tool_call_count", "created_at", "ended_at",
        ]  # fmt: skip


class StepOut(serializers.ModelSerializer):
    arguments = ObjectField(allow_null=True)

    class Meta:
        model = Step
        fields = ["sequence", "at", "role", "kind", "tool", "arguments", "content", "is_error", "extra"]


class TraceWhole(TraceOut):
    steps = StepOut(many=True)
    reflections = ReflectionShort(many=True)

    class Meta(TraceOut.Meta):
        fields = [*TraceOut.Meta.fields, "extra", "steps", "reflections"]


class ReflectionIn(serializers.Serializer):
    """Either `trace`, or `episodes` with what to look for across them."""

    trace = serializers.UUIDField(required=False, help_text="An ended trace to look back at.")
    episodes = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        min_length=2,
        max_length=200,
        help_text="Memories to look across; what repeats in two independent traces is proposed as a candidate.",
    )
    instruction = TextField(
        required=False, allow_blank=True, default="", help_text="What to look for, up to 2,000 characters."
    )


class ResultOut(serializers.Serializer):
    memory = serializers.UUIDField(source="memory_id")
    effect = serializers.CharField()
    kind = serializers.CharField(source="memory.kind")
    status = serializers.CharField(source="memory.status")
    content = serializers.CharField(source="memory.content")


class RejectedOut(serializers.Serializer):
    content = serializers.CharField()
    reason = serializers.CharField()
    detail = serializers.CharField(required=False)


class ReflectionOut(serializers.ModelSerializer):
    trace = serializers.UUIDField(source="trace_id", allow_null=True)
    episodes = serializers.ListField(child=serializers.UUIDField(), help_text="What was looked across.")
    agent = serializers.CharField(source="agent.slug", default=None, allow_null=True)
    scope = serializers.CharField(source="scope.slug", help_text="Where its memories went.")
    outcome = serializers.CharField(source="trace.status", default=None)
    memories = ResultOut(source="results", many=True)
    rejected = RejectedOut(many=True)
    next_try_at = serializers.SerializerMethodField()

    class Meta:
        model = Reflection
        fields = [
            "id", "trace", "episodes", "instruction", "agent", "scope", "status", "reason", "outcome", "memories",
            "rejected", "distiller", "model",
            "prompt_version", "tokens_in", "tokens_out", "cost_usd", "attempts", "error", "created_at",
            "started_at", "finished_at", "next_try_at",
        ]  # fmt: skip

    def get_next_try_at(self, reflection: Reflection) -> str | None:
        """When it is tried again after a failure, ISO 8601."""
        waiting = reflection.status == "queued" and reflection.attempts > 0
        return reflection.run_after.isoformat() if waiting else None
