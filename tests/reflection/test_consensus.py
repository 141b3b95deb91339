"""From a trace to what an agent is told: advice against trusted memories waits, and warnings come back as warnings."""

from __future__ import annotations

import pytest

from hindsight_site.accounts.audit import person
from hindsight_site.accounts.tenancy import team_transaction
from memories import actions
from memories.models import Memory
from reflection import pipeline
from reflection.drafts import StepDraft
from tests import factories

pytestmark = pytest.mark.django_db
RULE = "refunds above 500.00 need approval by a supervisor"
DO = "Retry the payment call after a timeout."
DONT = "Do not retry the payment call after a timeout."


def refused() -> tuple[StepDraft, ...]:
    """A refund that a rule of the system forbids."""
    asked = {"order_id": "44711", "amount": 612.0}
    return (
        StepDraft(role="user", content="Refund the whole order, please."),
        StepDraft(role="assistant", kind="tool_call", tool="refund_order", arguments=asked),
        StepDraft(
            role="tool", kind="tool_result", tool="refund_order", is_error=True, content=f'{{"error": "{RULE}"}}'
        ),
        StepDraft(role="assistant", content="It was refused, I cannot refund it."),
    )


def reflect(agent, **trace) -> None:
    _, reflection = factories.trace(agent, **trace)
    pipeline.reflect(agent.team, reflection.pk)
    reflection.refresh_from_db()
    assert reflection.status == "stored", (reflection.error, reflection.rejected)


def test_a_warning_that_the_rules_distilled_comes_back_as_a_warning(api, agent) -> None:
    reflect(agent, outcome="failed", task="Refund the whole order", steps=refused())
    body = {"query": "refund an order above 500", "kinds": ["experience"], "min_relevance": 0}
    answer = api.post("/api/v1/recall", body).json()
    assert answer["hits"][0]["warning"] is True
    assert "- [warning, private-coder] refund_order refuses refunds above 500.00" in answer["context"]


def test_distilled_advice_against_a_trusted_memory_waits_for_a_person(
    api, team_api, agent, alice, settings, model_server
) -> None:
    settings.LLM_BASE_URL, settings.LLM_API_KEY = model_server.base_url, "test"
    settings.LLM_MODEL = settings.LLM_MODEL_STRONG = "stub"
    trusted = factories.memory(agent, DO, kind="experience", structure={"lesson": DO})
    with team_transaction(agent.team):
        actions.approve(team=agent.team, by=person(alice), memory=trusted)
    steps = (
        StepDraft(role="user", content="Pay the invoice."),
        StepDraft(role="assistant", kind="tool_call", tool="pay", arguments={"invoice": 7}),
        StepDraft(role="tool", kind="tool_result", tool="pay", content="The payment was booked twice."),
    )
    lesson = {
        "kind": "experience",
        "quotes": [{"step": 2, "text": "The payment was booked twice."}],
        "content": DONT,
        "structure": {"lesson": DONT},
        "failure_class": "permanent",
        "durable": True,
        "confidence": 1.0,
        "tags": [],
    }
    model_server.script({"candidates": [lesson], "left_out": []})
    reflect(agent, task="Pay the invoice", steps=steps, remember=True)
    with team_transaction(agent.team):
        against = Memory.objects.of(agent.team).get(content=DONT)
        trusted.refresh_from_db()
    assert (against.status, against.trust) == ("quarantined", "agent")
    assert trusted.status == "active"
    (case,) = team_api.get("/api/v1/quarantine").json()["results"]
    assert (case["rule"], case["opposes"]) == ("opposes_trusted", [str(trusted.pk)])
    hits = api.post("/api/v1/recall", {"query": "payment call timed out", "min_relevance": 0}).json()["hits"]
    assert str(against.pk) not in [hit["memory"] for hit in hits]
