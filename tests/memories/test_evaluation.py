"""The quality benchmarks: readers, metrics, and a small run that leaves nothing behind."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from hindsight_site.accounts.models import Team
from memories.evaluation import crowd, datasets, latency, metrics, own, report, runs, surroundings
from memories.evaluation.datasets import Asked, Haystack, Item
from memories.evaluation.sets import SETS
from memories.models import Memory, Recall
from memories.search import vector_indexes

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "dev"

KEYS = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)
GOLD = st.frozensets(st.sampled_from("abcdefgh"), min_size=1, max_size=4)


@given(KEYS, GOLD, st.integers(1, 8))
def test_the_metrics_agree_with_each_other(ranked: list[str], gold: frozenset[str], k: int) -> None:
    some, every = metrics.any_at(ranked, gold, k), metrics.all_at(ranked, gold, k)
    share = metrics.recall_at(ranked, gold, k)
    assert every <= share <= some
    assert (share == 1.0) == (every == 1.0)
    assert (metrics.reciprocal_rank(ranked, gold) >= 1 / k) == (some == 1.0)


def test_auroc_counts_pairs() -> None:
    assert metrics.auroc([3, 2], [1, 2]) == pytest.approx(3.5 / 4)
    assert metrics.auroc([], [1]) is None


def test_no_match_weighs_both_kinds_alike() -> None:
    told = metrics.no_match([0.9, 0.8, 0.7, 0.1], [0.0, 0.6], floor=0.5)
    assert (told.lost, told.recall) == (0.25, 0.5)
    assert told.precision == pytest.approx(0.5 / 0.75)


def test_sessions_are_ranked_by_their_best_or_by_all_their_hits() -> None:
    hits = [("a", 0.6), ("b", 0.5), ("b", 0.5), ("c", 0.1)]
    assert metrics.session_ranking(hits) == ["a", "b", "c"]
    assert metrics.session_chances(hits) == ["b", "a", "c"]


def test_locomo_is_read_with_corrected_evidence(tmp_path: Path) -> None:
    turns = [{"dia_id": f"D1:{i}", "speaker": "Ann", "text": f"turn {i}"} for i in range(3)]
    turns[1]["caption"] = "a photo"
    questions = [
        {"qid": "q0", "question": "?", "category": 4, "evidence": ["D1:0"], "audit": {"correct_evidence": ["D1:2"]}},
        {"qid": "q1", "question": "?", "category": 5, "evidence": ["D1:0"]},
    ]
    session = {"session": 1, "datetime": "2023-05-08T13:56:00", "turns": turns}
    write(
        tmp_path / "locomo.json.gz",
        {"conversations": [{"conversation_id": "c", "sessions": [session], "questions": questions}]},
    )
    (haystack,) = datasets.locomo(tmp_path)
    assert haystack.items[1].content == "turn 1 [a photo]"
    assert haystack.items[2].occurred_at is not None
    assert haystack.questions[0].gold == {"D1:2"}
    assert haystack.questions[0].gold_sessions == {"1"}
    assert not haystack.questions[1].answerable


def write(path: Path, value: object) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(value, file)


@pytest.mark.skipif(not DATA.exists(), reason="the public data sets are not there")
@pytest.mark.parametrize("name", [name for name, chosen in SETS.items() if not chosen.is_own])
def test_every_set_is_read(name: str) -> None:
    haystacks = list(SETS[name].read(DATA))
    assert haystacks
    for haystack in haystacks:
        keys, sessions = {item.key for item in haystack.items}, {item.session_id for item in haystack.items}
        assert len(keys) == len(haystack.items)
        for question in haystack.questions:
            assert question.gold <= keys
            assert question.gold_sessions <= sessions


def test_our_own_sets_are_whole() -> None:
    assert len(own.paraphrases().questions) == 60
    names = own.identifiers()
    assert len(names.questions) >= 50
    assert len(names.items) > len(names.questions)  # look-alikes that nobody asks for


@pytest.mark.django_db
def test_a_run_asks_the_real_recall_and_leaves_nothing(team: Team) -> None:
    haystacks = [
        Haystack(
            "one",
            (Item("a", "The walrus sleeps at noon.", session_id="s", sequence=0), Item("b", "Tea is at four.")),
            (Asked("q", "When does the walrus sleep?", "x", frozenset("a"), frozenset("s")),),
        ),
        Haystack(
            "two", (Item("c", "Invoices go to the cabinet."),), (Asked("r", "Moon landing?", "x", answerable=False),)
        ),
    ]
    steps: list[tuple[str, int, int]] = []
    run = runs.run(haystacks, progress=lambda *step: steps.append(step))
    assert run.ranked[0].keys[0] == "a"
    assert run.ranked[0].best > run.wrong_scope[0]
    assert steps[-1] == ("asking", 2, 2)
    assert not Memory.objects.exists()
    assert not Recall.objects.exists()
    assert Team.objects.count() == 1
    rows = {figure.measure: figure for figure in report.figures("locomo", run, floor=0.1)}
    assert rows["any@1"].value == rows["session any@5"].value == 1.0
    assert rows["recall@10"].must == 0.78


@pytest.mark.django_db
def test_the_command_prints_and_writes_the_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "figures.json"
    call_command("evaluate", "recall", "--sets", "paraphrases_zh", "--json", str(target))
    shown = capsys.readouterr().out
    assert "any@1" in shown
    assert "model: use-multilingual-v3" in shown
    written = json.loads(target.read_text())
    assert written["paraphrases_zh"]["figures"]["any@5"] >= 0.74
    assert written["commit"]
    assert written["machine"]


@pytest.mark.django_db
def test_missing_data_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="--data"):
        call_command("evaluate", "masking", "--data", str(tmp_path))


def test_what_it_was_measured_with(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git" / "packed-refs").write_text("# pack-refs\nabc123 refs/heads/main\n")
    assert surroundings.commit(tmp_path) == "abc123"
    assert surroundings.commit(tmp_path / "nowhere") == "unknown"
    (tmp_path / "file").write_bytes(b"data")
    assert surroundings.checksum([tmp_path / "file"]) == "3a6eb0790f39ac87"
    assert "cores" in surroundings.machine()


def test_made_up_memories_are_the_same_every_time() -> None:
    one, again = crowd.crowd(20, 3), crowd.crowd(20, 3)
    assert one == again
    assert len(one.texts) == 20
    assert all(len(set(question.rstrip("?").split()) & set(" ".join(one.texts).split())) for question in one.questions)
    rows = crowd.mixed(np.eye(4, 8, dtype=np.float32), 50)
    assert rows.shape == (50, 8)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)


@pytest.mark.django_db(transaction=True)
def test_speed_is_measured_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"QUESTIONS": 4, "RECALLS": 6, "CALLERS": 2, "BULK": 10}.items():
        monkeypatch.setattr(latency, name, value)
    monkeypatch.setattr(vector_indexes, "BUILD_ABOVE", 30)
    rows = {row.measure: row for row in latency.measure([40], progress=lambda *_: None)}
    assert rows["40: recall, p50 ms"].value > rows["40: bare exact query, p50 ms"].value > 0
    assert rows["40: through the index, recall@30"].value > 0.8
    assert rows["bulk remember / embedder"].must == 0.8
    assert rows["40: recall / (embedding + bare)"].at_most
    assert not Team.objects.exists()
    assert not Memory.objects.exists()
    vector_indexes.sync()  # the rows are gone, so the index goes
    assert vector_indexes._there() == {}


def test_what_must_be_small_is_met_when_it_is() -> None:
    assert report.Figure("ms", 3.0, 1, must=4.0, at_most=True).met
    assert report.Figure("share", 3.0, 1, must=4.0).met is False
    assert report.Figure("share", None, 1, must=4.0).met is None
