"""Experience as it came in, the runs that distil it, and people judging the result."""

from reflection.models.mails import ReviewMail
from reflection.models.reviews import ReviewBatch, ReviewItem, Verdict
from reflection.models.runs import Reflection, ReflectionResult
from reflection.models.team_models import TeamModel
from reflection.models.traces import Step, Trace

__all__ = [
    "Reflection",
    "ReflectionResult",
    "ReviewBatch",
    "ReviewItem",
    "ReviewMail",
    "Step",
    "TeamModel",
    "Trace",
    "Verdict",
]
