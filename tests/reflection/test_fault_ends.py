"""Whatever a model endpoint does, the run ends in a state that can be seen, and the trace is kept.

How each fault is met on the way is in test_llm_distiller; here is what becomes of the run.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from memories.models import Evidence, Memory
from reflection import pipeline
from reflection.distill import endpoint
from reflection.models import Reflection, ReflectionResult, Step
from tests import factories
from tests.fakes import Fault

pytestmark = pytest.mark.django_db


@pytest.fixture
def model(settings, model_server, monkeypatch):
    settings.LLM_BASE_URL, settings.LLM_API_KEY = model_server.base_url, "test"
    settings.LLM_MODEL, settings.LLM_MODEL_STRONG = "small", "strong"
    settings.LLM_TIMEOUT_SECONDS, settings.LLM_PRICE_IN, settings.LLM_PRICE_OUT = 0.3, 1.0, 2.0
    monkeypatch.setattr(endpoint, "FIRST_WAIT_SECONDS", 0.01)
    model_server.hang_seconds = 30
    return model_server


def run(agent, model, fault: Fault, outcome: str = "succeeded") -> Reflection:
    """Look back at a trace while every request meets the fault."""
    model.always = fault
    _, reflection = factories.trace(agent, outcome=outcome)
    pipeline.reflect(agent.team, reflection.pk)
    reflection.refresh_from_db()
    return reflection


def check_nothing_is_lost_or_half_done(agent, reflection: Reflection) -> None:
    assert Step.objects.of(agent.team).filter(trace=reflection.trace_id).count() == 6, "the trace is kept"
    written = ReflectionResult.objects.of(agent.team).filter(reflection=reflection).count()
    assert Memory.objects.of(agent.team).count() == written
    if not written:
        assert not Evidence.objects.of(agent.team).exists()
    assert reflection.lease_until is None


# What lasts through every request → the end, and what its row says.
PASSING = {
    Fault.RATE_LIMITED: "status 429",
    Fault.SERVER_ERROR: "status 500",
    Fault.HANG: "took too long",
    Fault.DRIP: "took too long",
    Fault.HANG_UP: "broke off",
    Fault.NOT_A_COMPLETION: "no completion",
    Fault.NO_QUOTA: "no quota left",
}
LASTING = {
    Fault.UNAUTHORISED: "refused the API key",
    Fault.UNKNOWN_MODEL: "no model small",
    Fault.TOO_LONG: "too long",
    Fault.REFUSAL: "refused to look",
    Fault.PROSE: "holds no JSON",
    Fault.HALF_JSON: "not valid JSON",
    Fault.EMPTY: "is empty",
}
REFUSED = {
    Fault.WRONG_ENUM: "malformed",
    Fault.CONFIDENCE_1_7: "malformed",
    Fault.NO_STRUCTURE: "malformed",
    Fault.EVIDENCE_NOT_IN_TRACE: "not_grounded",
}
HARMLESS = (Fault.FENCED, Fault.THINKING, Fault.TRAILING_COMMA, Fault.NUL, Fault.SETS_TRUST)


@pytest.mark.parametrize("fault", PASSING)
def test_what_passes_by_itself_is_tried_again_later(agent, model, fault) -> None:
    done = run(agent, model, fault)
    assert (done.status, done.attempts) == ("queued", 1)
    assert PASSING[fault] in done.error
    assert done.run_after > timezone.now()
    check_nothing_is_lost_or_half_done(agent, done)
    model.always = None
    Reflection.objects.filter(pk=done.pk).update(run_after=timezone.now())
    pipeline.reflect(agent.team, done.pk)
    done.refresh_from_db()
    assert (done.status, done.attempts, done.error) == ("stored", 2, "")


def test_a_later_run_waits_as_long_as_the_endpoint_asks(agent, model) -> None:
    model.retry_after = "600"
    done = run(agent, model, Fault.RATE_LIMITED)
    assert timedelta(minutes=9) < done.run_after - timezone.now() <= timedelta(minutes=10)
    assert len(model.asked("chat/completions")) == 1


@pytest.mark.parametrize("fault", LASTING)
def test_what_no_waiting_mends_fails_visibly(agent, model, fault) -> None:
    done = run(agent, model, fault)
    assert (done.status, done.finished_at is not None) == ("failed", True)
    assert LASTING[fault] in done.error
    check_nothing_is_lost_or_half_done(agent, done)


@pytest.mark.parametrize("fault", REFUSED)
def test_what_an_answer_may_not_say_is_refused_with_its_reason(agent, model, fault) -> None:
    done = run(agent, model, fault)
    assert done.status == "rejected"
    assert {row["reason"] for row in done.rejected} == {REFUSED[fault]}
    check_nothing_is_lost_or_half_done(agent, done)


@pytest.mark.parametrize("fault", HARMLESS)
def test_what_can_be_read_all_the_same_is_stored_and_sets_nothing_of_ours(agent, model, fault) -> None:
    done = run(agent, model, fault)
    assert done.status == "stored"
    for memory in Memory.objects.of(agent.team).select_related("scope", "team"):
        assert (memory.trust, memory.scope.slug, memory.team, memory.pinned) == (
            "agent", "private-coder", agent.team, False,
        )  # fmt: skip
        assert "\x00" not in memory.content
        assert not {"trust", "scope", "team", "status"} & set(memory.structure)
    check_nothing_is_lost_or_half_done(agent, done)


def test_every_fault_of_an_answer_is_here() -> None:
    told = {*PASSING, *LASTING, *REFUSED, *HARMLESS}
    assert set(Fault) - told == {Fault.ONE_VECTOR_SHORT, Fault.WRONG_DIMENSIONS}, "those are of embeddings"


@pytest.mark.parametrize(("outcome", "asked"), [("succeeded", "small"), ("failed", "strong"), ("interrupted", "small")])
def test_the_model_prompt_and_cost_are_kept_and_shown(agent, api, model, outcome, asked) -> None:
    done = run(agent, model, Fault.FENCED, outcome)
    assert (done.model, done.distiller) == (asked, "model")
    assert done.prompt_version.startswith("prompts-")
    assert done.cost_usd == pytest.approx((done.tokens_in + 2 * done.tokens_out) / 1_000_000)
    memory = Memory.objects.of(agent.team).first()
    assert (memory.model, memory.prompt_version) == (asked, done.prompt_version)
    body = api.get(f"/api/v1/reflections/{done.pk}").json()
    assert (body["model"], body["prompt_version"], body["cost_usd"]) == (asked, done.prompt_version, done.cost_usd)


def test_failed_attempts_cost_too(agent, model) -> None:
    done = run(agent, model, Fault.PROSE)
    assert done.cost_usd == pytest.approx((done.tokens_in + 2 * done.tokens_out) / 1_000_000)
    assert done.cost_usd > 0
