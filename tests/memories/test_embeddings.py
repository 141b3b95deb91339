"""Vectors: what is refused, the model in the process, and an endpoint with its faults."""

from __future__ import annotations

import math
import os
import threading

import numpy as np
import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from memories import embeddings
from memories.embeddings import EmbeddingError, check, get_embedder
from memories.embeddings.local import MAX_CHARS, LocalEmbedder, use_one_blas_thread
from memories.embeddings.openai import BATCH, OpenAIEmbedder
from tests.fakes import Fault, ModelServer


@pytest.fixture(scope="module")
def local() -> LocalEmbedder:
    embedder = LocalEmbedder()
    embedder.warm_up()
    return embedder


@pytest.fixture
def remote(model_server: ModelServer) -> OpenAIEmbedder:
    return OpenAIEmbedder(
        base_url=model_server.base_url, api_key="sk-test", model="small", dimensions=1536, timeout_seconds=1.0
    )


@pytest.fixture
def fresh_choice():
    """Forget the embedder of this process before and after."""
    get_embedder.cache_clear()
    yield
    get_embedder.cache_clear()


def test_good_vectors_come_back_with_length_one() -> None:
    checked = check(np.array([[3.0, 4.0], [0.0, 2.0]]), 2, 2)
    assert checked.dtype == np.float32
    assert np.allclose(checked, [[0.6, 0.8], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("vectors", "n", "dimensions"),
    [
        ([[1.0, 0.0]], 2, 2),  # one vector short
        ([[1.0, 0.0]], 1, 3),  # wrong dimensions
        ([1.0, 0.0], 2, 2),  # not a table
        ([[math.nan, 1.0]], 1, 2),
        ([[math.inf, 1.0]], 1, 2),
        ([[1e-7, 0.0]], 1, 2),  # no direction
    ],
)
def test_bad_vectors_are_refused(vectors: list, n: int, dimensions: int) -> None:
    with pytest.raises(EmbeddingError):
        check(np.array(vectors), n, dimensions)


@given(st.lists(st.lists(st.floats(-1e3, 1e3, width=32), min_size=3, max_size=3), max_size=5))
def test_a_check_passes_only_unit_vectors(rows: list[list[float]]) -> None:
    try:
        checked = check(np.array(rows).reshape(len(rows), 3), len(rows), 3)
    except EmbeddingError:
        assert min(np.linalg.norm(row) for row in rows) < 1e-5
    else:
        assert np.allclose(np.linalg.norm(checked, axis=1), 1.0, atol=1e-5)


def test_like_texts_are_near_in_both_languages(local: LocalEmbedder) -> None:
    texts = [
        "The cat sleeps on the sofa.",
        "A kitten is asleep on the couch.",
        "猫在沙发上睡觉。",
        "Interest rates rose.",
    ]
    cat, kitten, chinese, rates = local.embed(texts, "passage")
    assert cat @ kitten > 0.5
    assert cat @ chinese > 0.5
    assert cat @ rates < 0.2


def test_a_question_is_embedded_without_its_mark(local: LocalEmbedder) -> None:
    asked, plain, mark = local.embed(["where is the cat??", "where is the cat", "?"], "query")
    assert np.array_equal(asked, plain)
    assert np.linalg.norm(mark) == pytest.approx(1.0, abs=1e-5)


def test_only_the_head_of_a_long_text_counts(local: LocalEmbedder) -> None:
    head = "word " * (MAX_CHARS // 5)
    long, short = local.embed([head + "tail " * 10_000, head], "passage")
    assert np.array_equal(long, short)


def test_no_texts_give_no_vectors(local: LocalEmbedder, remote: OpenAIEmbedder) -> None:
    assert local.embed([], "passage").shape == (0, 512)
    assert remote.embed([], "passage").shape == (0, 1536)


def test_many_threads_get_what_one_gets() -> None:
    embedder = LocalEmbedder()  # not loaded: the threads race for it
    texts = [f"memory number {i} about topic {i % 7}" for i in range(24)]
    results: dict[int, np.ndarray] = {}

    def work(number: int) -> None:
        results[number] = embedder.embed(texts, "passage")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = embedder.embed(texts, "passage")
    assert all(np.allclose(results[i], alone, atol=1e-6) for i in range(6))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # the test's own threads are idle
def test_a_loaded_model_works_after_a_fork(local: LocalEmbedder) -> None:
    before = local.embed(["fork me"], "query")[0]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, local.embed(["fork me"], "query")[0].tobytes())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        raw = pipe.read()
    os.waitpid(child, 0)
    assert np.array_equal(np.frombuffer(raw, dtype=np.float32), before)


def test_limiting_the_threads_can_be_repeated() -> None:
    use_one_blas_thread()
    use_one_blas_thread()
    assert (np.ones((64, 64)) @ np.ones((64, 64)))[0, 0] == 64


def test_an_endpoint_is_asked_in_batches_and_in_order(remote: OpenAIEmbedder, model_server: ModelServer) -> None:
    texts = [f"text {i}" for i in range(BATCH + 5)]
    vectors = remote.embed(texts, "passage")
    asked = model_server.asked("/embeddings")
    assert [len(request.body["input"]) for request in asked] == [BATCH, 5]
    assert np.allclose(vectors[BATCH + 1], remote.embed([texts[BATCH + 1]], "passage")[0], atol=1e-5)
    assert remote.model_id == "small@1536"


def test_an_endpoint_is_asked_again_after_429_and_500(remote: OpenAIEmbedder, model_server: ModelServer) -> None:
    model_server.script(Fault.RATE_LIMITED, Fault.SERVER_ERROR)
    assert remote.embed(["patience"], "query").shape == (1, 1536)
    assert len(model_server.asked("/embeddings")) == 3


@pytest.mark.parametrize("fault", [Fault.ONE_VECTOR_SHORT, Fault.WRONG_DIMENSIONS, Fault.UNAUTHORISED])
def test_a_bad_answer_is_refused(remote: OpenAIEmbedder, model_server: ModelServer, fault: Fault) -> None:
    model_server.script(fault)
    with pytest.raises(EmbeddingError) as refused:
        remote.embed(["one", "two", "three"], "passage")
    assert "sk-test" not in str(refused.value)


def test_an_endpoint_that_is_not_there_is_an_error() -> None:
    nowhere = OpenAIEmbedder(
        base_url="http://127.0.0.1:9/v1", api_key="", model="small", dimensions=1536, timeout_seconds=0.2
    )
    with pytest.raises(EmbeddingError):
        nowhere.embed(["anyone?"], "query")


def test_the_settings_choose_the_embedder(settings, fresh_choice: None) -> None:
    settings.EMBEDDING_BACKEND = "openai"
    settings.EMBEDDING_MODEL, settings.EMBEDDING_DIMENSIONS = "bge-m3", 1024
    assert get_embedder().model_id == "bge-m3@1024"
    assert get_embedder() is get_embedder()


def test_an_unknown_backend_is_named(settings, fresh_choice: None) -> None:
    settings.EMBEDDING_BACKEND = "magic"
    with pytest.raises(ImproperlyConfigured, match="magic"):
        get_embedder()


def test_warming_up_loads_the_local_model(settings, fresh_choice: None) -> None:
    settings.EMBEDDING_BACKEND = "local"
    embeddings.warm_up()
    assert get_embedder().model_id.startswith("use-multilingual-v3@")
