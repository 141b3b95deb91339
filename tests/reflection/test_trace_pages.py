"""The pages of traces: the list, the timeline, the runs, and asking for another look back."""

from __future__ import annotations

import pytest
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from memories.models import Evidence
from reflection import timeline
from reflection.actions import StepDraft
from reflection.enums import ReflectionStatus
from reflection.models import Reflection, ReflectionResult, Trace
from tests import factories

TEXTS = st.text(max_size=400)
SPANS = st.lists(st.tuples(st.integers(0, 420), st.integers(0, 420)).map(lambda pair: timeline.Span(*pair)), max_size=6)


@pytest.fixture
def trace(agent) -> Trace:
    return factories.trace(agent)[0]


def page_of(trace: Trace) -> str:
    return reverse("trace", args=[trace.pk])


def quote(trace: Trace, sequence: int, start: int, end: int, memory=None) -> Evidence:
    step = trace.steps.get(sequence=sequence)
    return Evidence.objects.create(
        team=trace.team,
        memory=memory or factories.memory(trace.agent),
        trace_id=trace.pk,
        step_id=step.pk,
        step_sequence=sequence,
        role=step.role,
        start=start,
        end=end,
        quote=step.text[start:end],
    )


@given(TEXTS, SPANS)
def test_cutting_at_quotes_loses_nothing_and_marks_exactly_the_quotes(text, spans):
    cut = timeline.parts(text, spans)
    assert "".join(part.text for part in cut) == text
    assert all(part.text for part in cut)
    marked = "".join(("x" if part.quoted else ".") * len(part.text) for part in cut)
    inside = [any(span.start <= i < span.end for span in spans) for i in range(len(text))]
    assert marked == "".join("x" if yes else "." for yes in inside)


@given(st.text(min_size=2_000, max_size=4_000), SPANS, st.booleans())
def test_a_folded_text_keeps_every_quote_whole_and_is_not_longer(text, spans, said):
    cut = timeline.parts(text, spans)
    short = timeline.folded(cut, said=said)
    assert short is not None
    assert [p.text for p in short if p.quoted] == [p.text for p in cut if p.quoted]
    assert sum(len(p.text) for p in short) <= len(text) + 3 * len(short)


def test_a_short_text_is_not_folded():
    assert timeline.folded(timeline.parts("short", []), said=False) is None


@given(st.integers(0, 3_000), st.sets(st.integers(0, 3_000), max_size=5))
def test_the_strip_has_few_columns_and_loses_no_quote(count, quoted):
    steps = [(i, "message", i == 7, i * 13 % 500) for i in range(count)]
    columns = timeline.strip(steps, quoted)
    assert len(columns) <= timeline.COLUMNS
    assert any(column.evidence for column in columns) == any(number < count for number in quoted)
    assert any(column.error for column in columns) == (count > 7)
    assert all(column.y >= 0 and column.y + column.height <= timeline.FLOOR + 0.1 for column in columns)


def test_a_short_trace_is_drawn_as_bars_and_not_as_walls():
    first, second = timeline.strip([(0, "message", False, 20), (1, "message", False, 18)], set())
    assert first.width < 40
    assert second.x == timeline.WIDEST


def test_the_list_shows_what_came_of_each_trace(browse, alice, agent, trace):
    short, _ = factories.trace(agent, task="Say hello", steps=(StepDraft(role="user", content="Hello"),))
    reflection = trace.reflections.get()
    Reflection.objects.filter(pk=reflection.pk).update(status=ReflectionStatus.STORED)
    ReflectionResult.objects.create(
        team=agent.team, reflection=reflection, memory=factories.memory(agent), effect="created"
    )
    page = browse(alice).get(reverse("traces")).content.decode()
    assert "1 memory" in page
    assert "Skipped" in page
    assert short.reflections.get().reason in page


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"q": "march"}, {"Export the March invoices as CSV"}),
        ({"status": "failed"}, {"Book a table"}),
        ({"reflection": "skipped"}, set()),
        ({"agent": "coder"}, {"Export the March invoices as CSV", "Book a table"}),
        ({"agent": "nobody"}, set()),
        ({"status": "nonsense"}, set()),
    ],
)
def test_each_filter_narrows_the_list(browse, alice, agent, trace, query, shown):
    factories.trace(agent, outcome="failed", task="Book a table")
    rows = browse(alice).get(reverse("traces"), query).context["page"].rows
    assert {row.task for row in rows} == shown


def test_the_timeline_marks_what_became_evidence(browse, alice, trace):
    evidence = quote(trace, 2, 7, 30)
    page = browse(alice).get(page_of(trace)).content.decode()
    assert "<mark>month must be given as </mark>" in page
    assert 'id="step-2" data-error data-evidence' in page
    assert reverse("memory", args=[evidence.memory_id]) in page
    assert "&quot;month&quot;: &quot;March&quot;" in page  # the arguments of a call


def test_a_quote_from_a_bare_call_is_marked_where_it_was_counted(browse, alice, trace):
    step = trace.steps.get(sequence=1)
    quote(trace, 1, 0, len(step.text))
    moment = browse(alice).get(page_of(trace)).context["moments"][1]
    assert [(part.text, part.quoted) for part in moment.parts] == [(step.text, True)]


def test_the_runs_say_what_was_refused_and_why(browse, alice, trace):
    reflection = trace.reflections.get()
    Reflection.objects.filter(pk=reflection.pk).update(
        status=ReflectionStatus.REJECTED,
        rejected=[{"content": "Be polite.", "reason": "too_vague", "detail": "no action"}],
        distiller="rules",
    )
    page = browse(alice).get(page_of(trace)).content.decode()
    assert "Be polite." in page
    assert "Too vague to act on: no action" in page
    assert "distilled by rules" in page


def test_a_long_trace_is_shown_in_parts(browse, alice, agent):
    steps = tuple(StepDraft(role="user", content=f"line {n}") for n in range(450))
    trace, _ = factories.trace(agent, steps=steps)
    page = browse(alice).get(page_of(trace), {"step": "399"}).content.decode()
    assert 'id="step-399"' in page
    assert 'id="step-199"' not in page
    assert "?step=0#steps" in page
    assert "?step=400#steps" in page
    assert 'id="step-449"' in browse(alice).get(page_of(trace), {"step": "449"}).content.decode()
    assert browse(alice).get(page_of(trace), {"step": "9" * 30}).status_code == 200


def test_reflecting_again_queues_one_run(browse, bob, trace):
    Reflection.objects.filter(trace=trace).update(status=ReflectionStatus.FAILED)
    client = browse(bob)
    url = reverse("trace_reflect", args=[trace.pk])
    assert url in client.get(page_of(trace)).content.decode()
    for _ in range(2):
        answer = client.post(url)
        assert (answer.status_code, answer.url) == (302, page_of(trace))
    assert trace.reflections.filter(status=ReflectionStatus.QUEUED).count() == 1
    assert url not in client.get(page_of(trace)).content.decode()


def test_an_open_trace_cannot_be_looked_back_at(browse, bob, agent):
    trace, _ = factories.trace(agent, outcome="")
    client = browse(bob)
    client.post(reverse("trace_reflect", args=[trace.pk]))
    assert "still open" in client.get(page_of(trace)).content.decode()
    assert not trace.reflections.exists()


def test_a_viewer_may_look_and_not_ask(browse, carol, trace):
    Reflection.objects.filter(trace=trace).update(status=ReflectionStatus.FAILED)
    url = reverse("trace_reflect", args=[trace.pk])
    assert url not in browse(carol).get(page_of(trace)).content.decode()
    assert browse(carol).post(url).status_code == 403


def test_another_team_finds_nothing(browse, mallory, trace):
    client = browse(mallory)
    assert client.get(page_of(trace)).status_code == 404
    assert client.post(reverse("trace_reflect", args=[trace.pk])).status_code == 404
    assert trace.task not in client.get(reverse("traces")).content.decode()


def test_the_pages_take_a_constant_number_of_queries(browse, alice, agent, django_assert_max_num_queries):
    for number in range(12):
        trace, reflection = factories.trace(agent, task=f"Export number {number}")
        memory = factories.memory(agent, f"Parcel {number} went to locker {number * 5}.")
        ReflectionResult.objects.create(team=agent.team, reflection=reflection, memory=memory, effect="created")
        for sequence in (2, 4):
            quote(trace, sequence, 0, 9, memory)
    client = browse(alice)
    with django_assert_max_num_queries(18):  # four of them for the progress of the batch
        client.get(reverse("traces"))
    with django_assert_max_num_queries(15):
        client.get(page_of(trace))
