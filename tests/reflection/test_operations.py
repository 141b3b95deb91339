"""What a model says of memories that are known: confirmed, refined, contradicted; never over a person's head."""

from __future__ import annotations

import pytest
from django.utils import timezone

from hindsight_site.accounts.tenancy import team_transaction
from memories.models import Memory, Relation, Revision
from reflection import pipeline
from reflection.models import Reflection
from tests import factories

pytestmark = pytest.mark.django_db
KNOWN = "The export tool takes the month as digits."
SHARPER = "The export tool takes the month as YYYY-MM, also for a single month."
QUOTE = "month must be given as YYYY-MM"


@pytest.fixture
def known(agent, settings, model_server) -> Memory:
    settings.LLM_BASE_URL, settings.LLM_API_KEY = model_server.base_url, "test"
    settings.LLM_MODEL = settings.LLM_MODEL_STRONG = "stub"
    return factories.memory(agent, KNOWN, kind="experience", structure={"lesson": KNOWN})


def proposal(operation: str, content: str, known: int | None = 1, **changes) -> dict:
    item = {
        "kind": "experience",
        "quotes": [{"step": 2, "text": QUOTE}],
        "content": content,
        "structure": {"lesson": content},
        "failure_class": "permanent",
        "durable": True,
        "operation": operation,
        "known": known,
        "confidence": 0.8,
        "tags": [],
    }
    return {"candidates": [{**item, **changes}], "left_out": []}


def run(agent, model_server, *answers) -> Reflection:
    _, reflection = factories.trace(agent)
    model_server.script(*answers)
    pipeline.reflect(agent.team, reflection.pk)
    reflection.refresh_from_db()
    assert not reflection.error, reflection.error
    return reflection


def effects(reflection: Reflection) -> list[tuple[object, str]]:
    return [(result.memory_id, result.effect) for result in reflection.results.all()]


def test_the_model_is_told_what_is_known(agent, known, model_server) -> None:
    run(agent, model_server, proposal("confirm", KNOWN))
    asked = str(model_server.asked("chat/completions")[-1].body)
    assert "known 1>>" in asked
    assert KNOWN in asked


def test_confirm_raises_support_and_changes_no_word(agent, known, model_server) -> None:
    done = run(agent, model_server, proposal("confirm", "The export tool takes digits for months."))
    known.refresh_from_db()
    assert effects(done) == [(known.pk, "confirmed")]
    assert (known.content, known.support_count, done.status) == (KNOWN, 2, "nothing_new")
    assert known.evidence.get().quote == QUOTE


def test_refine_writes_a_revision_and_keeps_the_former(agent, known, model_server) -> None:
    done = run(agent, model_server, proposal("refine", SHARPER))
    known.refresh_from_db()
    assert effects(done) == [(known.pk, "refined")]
    assert (known.content, known.revision, done.status) == (SHARPER, 2, "stored")
    assert Revision.objects.of(agent.team).get(memory=known).content == KNOWN
    assert Memory.objects.of(agent.team).filter(kind="experience").count() == 1


def test_refine_keeps_the_support_it_brings(agent, known, model_server) -> None:
    run(agent, model_server, proposal("refine", SHARPER))
    known.refresh_from_db()
    assert (known.support_count, known.evidence.get(removed_at=None).quote) == (2, QUOTE)


def test_a_refinement_waits_where_the_scope_gates(agent, known, model_server) -> None:
    with team_transaction(agent.team):
        type(known.scope).objects.of(agent.team).update(review_mode="gate_all")
    done = run(agent, model_server, proposal("refine", SHARPER))
    known.refresh_from_db()
    assert (known.content, known.status, effects(done)) == (SHARPER, "candidate", [(known.pk, "refined")])


def test_contradict_keeps_both_and_asks_a_person(agent, known, model_server) -> None:
    done = run(agent, model_server, proposal("contradict", "The export tool takes the month as a word, such as March."))
    other = Memory.objects.of(agent.team).filter(kind="experience").exclude(pk=known.pk).get()
    known.refresh_from_db()
    assert effects(done) == [(other.pk, "created")]
    assert (known.needs_review, other.needs_review, known.status) == (True, True, "active")
    assert Relation.objects.of(agent.team).filter(source=other, target=known, kind="contradicts").exists()


@pytest.mark.parametrize("trusted", [{"trust": "human"}, {"approved_at": timezone.now()}, {"pinned": True}])
def test_what_a_person_stands_behind_is_not_rewritten(agent, known, model_server, trusted) -> None:
    with team_transaction(agent.team):
        Memory.objects.of(agent.team).filter(pk=known.pk).update(**trusted)
    done = run(agent, model_server, proposal("refine", SHARPER))
    known.refresh_from_db()
    beside = Memory.objects.of(agent.team).filter(kind="experience").exclude(pk=known.pk).get()
    assert (known.content, known.revision) == (KNOWN, 1)
    assert (beside.status, beside.needs_review) == ("candidate", True)
    assert effects(done) == [(beside.pk, "created")]
    assert Relation.objects.of(agent.team).filter(source=beside, target=known, kind="relates_to").exists()


def test_a_contradiction_of_what_a_person_approved_is_held_back(agent, known, model_server) -> None:
    with team_transaction(agent.team):
        Memory.objects.of(agent.team).filter(pk=known.pk).update(trust="human", approved_at=timezone.now())
    done = run(agent, model_server, proposal("contradict", "The export tool takes the month as a word, such as March."))
    held = Memory.objects.of(agent.team).filter(kind="experience").exclude(pk=known.pk).get()
    assert (held.status, effects(done)) == ("quarantined", [(held.pk, "quarantined")])


@pytest.mark.parametrize("number", [None, 0, -1, 99])
def test_a_number_that_names_nothing_makes_it_a_memory_of_its_own(agent, known, model_server, number) -> None:
    run(agent, model_server, proposal("refine", SHARPER, known=number))
    known.refresh_from_db()
    assert known.content == KNOWN
    assert Memory.objects.of(agent.team).filter(content=SHARPER).exists()


def test_what_was_demoted_meanwhile_is_left_alone(agent, known, model_server) -> None:
    with team_transaction(agent.team):
        Memory.objects.of(agent.team).filter(pk=known.pk).update(status="demoted")
    run(agent, model_server, proposal("refine", SHARPER))
    known.refresh_from_db()
    assert (known.content, known.status) == (KNOWN, "demoted")


def test_an_operation_needs_its_quote_like_anything_else(agent, known, model_server) -> None:
    done = run(agent, model_server, proposal("refine", SHARPER, quotes=[{"step": 2, "text": "never said by anybody"}]))
    known.refresh_from_db()
    assert (known.content, done.status) == (KNOWN, "rejected")
    assert [row["reason"] for row in done.rejected] == ["not_grounded"]


def test_an_unknown_operation_is_repaired_once_and_then_refused(agent, known, model_server) -> None:
    done = run(agent, model_server, proposal("overwrite", SHARPER), proposal("overwrite", SHARPER))
    known.refresh_from_db()
    assert known.content == KNOWN
    assert [row["reason"] for row in done.rejected] == ["malformed"]
