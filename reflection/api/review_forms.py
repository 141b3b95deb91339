"""The forms of the weekly review over REST: what a batch, an item and a verdict look like, and what is sent."""

from __future__ import annotations

from rest_framework import serializers

from hindsight_site.api.fields import ObjectField, TextField
from memories.api import serializers as forms
from memories.enums import Kind
from reflection.enums import BatchStatus, Decision, DemoteReason, ItemState, Stratum
from reflection.review.verdicts import MAX_NOTE_CHARS

# "Could not tell" leaves a disagreement as it is.
ENDS = [choice for choice in Decision.choices if choice[0] != Decision.CANNOT_TELL]


class ShareOut(serializers.Serializer):
    """A share with its 95 % interval (Wilson), all in 0..1."""

    hits = serializers.IntegerField()
    n = serializers.IntegerField()
    share = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    is_enough = serializers.BooleanField(help_text="False under 20 judgements: it says too little to be a result.")


class BatchOut(serializers.Serializer):
    id = serializers.UUIDField()
    week = serializers.CharField(help_text="The ISO week in the team's time zone, such as 2026-W49.")
    status = serializers.ChoiceField(choices=BatchStatus.choices)
    opens_at = serializers.DateTimeField()
    closes_at = serializers.DateTimeField()
    seed = serializers.CharField(help_text="The draw can be repeated from it.")
    population = ObjectField(help_text="By stratum: how many could be drawn, and how many were.")
    pending = serializers.IntegerField()
    decided = serializers.IntegerField()
    conflicted = serializers.IntegerField(help_text="Two people differ; a third has to settle it.")
    resolved = serializers.IntegerField(help_text="They differed, and it was settled.")
    void = serializers.IntegerField()
    acceptance = ShareOut(allow_null=True, help_text="Of the random sample; null while nothing is judged.")


class JudgedMemoryOut(serializers.Serializer):
    """What a reviewer is shown: no confidence and no author, so that the judgement is blind."""

    id = serializers.UUIDField()
    content = serializers.CharField(help_text="Empty when it was forgotten.")
    kind = serializers.ChoiceField(choices=Kind.choices)
    structure = ObjectField()
    scope = serializers.CharField()
    revision = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class VerdictOut(serializers.Serializer):
    decision = serializers.ChoiceField(choices=Decision.choices)
    reason = serializers.ChoiceField(choices=[*DemoteReason.choices, ("", "None given")])
    note = serializers.CharField()
    reviewer = serializers.CharField()
    at = serializers.DateTimeField()


class ItemOut(serializers.Serializer):
    id = serializers.UUIDField()
    batch = serializers.UUIDField()
    position = serializers.IntegerField()
    state = serializers.ChoiceField(choices=ItemState.choices)
    version = serializers.IntegerField(help_text="Send it with the verdict: a stale one is refused.")
    memory = JudgedMemoryOut()
    evidence = forms.EvidenceOut(many=True)
    stratum = serializers.ChoiceField(
        choices=Stratum.choices, allow_null=True, help_text="Null until it is decided or the week is over."
    )
    inclusion_probability = serializers.FloatField(allow_null=True)
    verdict = VerdictOut(
        allow_null=True,
        help_text="What counts. Null until it is decided or the week is over, and while two people differ.",
    )
    opinions = VerdictOut(many=True, help_text="Of everybody who judged it; empty until it is decided.")


class ItemsIn(serializers.Serializer):
    state = serializers.ChoiceField(choices=ItemState.choices, required=False)


class VerdictIn(serializers.Serializer):
    decision = serializers.ChoiceField(choices=Decision.choices)
    reason = serializers.ChoiceField(
        choices=DemoteReason.choices, required=False, allow_blank=True, default="", help_text="With a demotion."
    )
    note = TextField(required=False, allow_blank=True, default="", max_length=MAX_NOTE_CHARS)
    content = TextField(required=False, allow_null=True, default=None, help_text="The new text, with an edit.")
    version = serializers.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, help_text="Of the item as it was read; left out: as it is."
    )
    memory_revision = serializers.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, help_text="Of the memory as it was read; checked when given."
    )


class SettleIn(VerdictIn):
    decision = serializers.ChoiceField(choices=ENDS)
