"""The tokenizer: what comes out of a text, that PostgreSQL takes it, and that it ends in time."""

from __future__ import annotations

import re
import time

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from memories.search import tokens
from memories.search.identifiers import is_identifier
from memories.search.tokens import document_tokens, query_tokens, tsquery_literal, tsvector_literal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("utf-8-sig", {"utf-8-sig", "utf", "sig"}),
        ("ERR_CONN_4031", {"err_conn_4031", "err", "conn", "4031"}),
        ("see app/billing/views.py.", {"app/billing/views.py", "billing/views.py", "views.py", "views", "billing"}),
        ("getUserName()", {"getusername", "user", "name"}),
        ("HTTPServer2", {"httpserver2", "http", "server"}),
        ("snake_case_name", {"snake_case_name", "snake", "case", "name"}),
        ("std::vector::reserve", {"std::vector::reserve", "vector::reserve", "reserve", "vector"}),
        ("C++ and C#", {"c++", "c#"}),
        ("--no-verify", {"no-verify", "verify"}),
        ("wi-fi", {"wi-fi", "wifi"}),
        ("1,200 items", {"1200"}),
        ("running studies", {"running", "run", "studies", "studi"}),
        ("Café Straße", {"cafe", "strasse"}),
        ("ＡＰＩ ４０３１", {"api", "4031"}),
        ("Ann's", {"ann"}),
        ("科幻电影", {"科幻电影", "科幻", "电影"}),
        ("カレー", {"カレ", "レー"}),
        ("서울에서", {"서울에서", "서울"}),
        ("हिन्दी में", {"हिन्दी", "में"}),
    ],
)
def test_a_run_is_kept_whole_and_in_parts(text: str, expected: set[str]) -> None:
    assert expected <= set(document_tokens(text))


def test_words_that_say_nothing_are_left_out() -> None:
    assert document_tokens("What is the, and don't you? 我们的是什么 ____ !? 🙂") == []


def test_what_is_asked_meets_what_was_written() -> None:
    written = set(document_tokens("Opening app/billing/views.py with utf-8-sig fixed the imports; see ERR_4031."))
    for question in ("billing/views.py", "views.py", "UTF-8-SIG", "import", "err_4031"):
        assert set(query_tokens(question).lexemes) & written, question


@pytest.mark.parametrize(
    "run",
    ["utf-8-sig", "ERR_CONN_4031", "billing/views.py", "getUserName", "v3.11.4", "10.0.0.1", "PR-1234", "9077"]
    + ["3fa9c1e", "np.array", "std::vector", "ConnectionResetError", "a@b.example", "AX-200-B"],
)
def test_names_of_exact_things_are_identifiers(run: str) -> None:
    assert query_tokens(f"what about {run}?").identifiers[0] == run.lower()


@pytest.mark.parametrize(
    "run", ["well-known", "2023", "10am", "2023-05-08", "9:30", "4-year-old", "YouTube", "iPhone", "and/or", "e.g"]
)
def test_ordinary_words_and_dates_are_not(run: str) -> None:
    assert not is_identifier(run)
    assert query_tokens(run).identifiers == ()


def test_a_query_term_comes_once_with_its_weightiest_kind() -> None:
    terms = query_tokens("views billing/views.py views").terms
    assert len({term.lexeme for term in terms}) == len(terms)
    assert next(term for term in terms if term.lexeme == "views").kind == "word"


def test_a_long_query_keeps_its_weightiest_terms() -> None:
    query = query_tokens(" ".join(f"word{chr(97 + i % 26)}{chr(97 + i // 26)}_x" for i in range(200)))
    assert len(query.terms) == tokens.MAX_QUERY_TERMS
    assert {term.kind for term in query.terms} == {"identifier"}


@given(st.text(max_size=300))
def test_any_text_gives_clean_tokens(text: str) -> None:
    found = document_tokens(text)
    assert all(token and not re.search(r"\s|\x00", token) for token in found)
    assert set(query_tokens(text).lexemes) <= set(found)


@given(st.text(alphabet="abXY_-./:@#3９中文の é'’", max_size=60))
def test_the_same_tokens_whatever_the_case_of_a_word(text: str) -> None:
    words = [run for run in re.findall(r"\w+", text) if run.isalpha() and run.isascii()]
    for word in words:
        assert document_tokens(word.lower())[:1] == document_tokens(word.upper())[:1]


@pytest.mark.parametrize(
    "unit",
    ["a/", "a", "aA", "the quick brown fox ", "中文分词", "a_b.", "1.2-", "é", " n't", "１２", "aB1_", "서", "の"],
)
def test_fifty_kilobytes_take_no_time(unit: str) -> None:
    text = unit * (50_000 // len(unit.encode()))
    started = time.perf_counter()
    literal = tsvector_literal(document_tokens(text))
    assert time.perf_counter() - started < 2.0  # about 0.03 s; quadratic work would take minutes
    assert len(literal.encode()) < tokens.MAX_VECTOR_BYTES


@pytest.mark.django_db
@given(st.lists(st.text(max_size=40), max_size=30))
def test_postgresql_takes_any_tokens(found: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT length(%s::tsvector)", [tsvector_literal(found)])
        kept = {token.replace("\x00", "").encode("utf-8", "ignore").decode() for token in found} - {""}
        assert cursor.fetchone()[0] == len(kept)


@pytest.mark.django_db
def test_limits_of_the_type_are_kept() -> None:
    many = ["x"] * 20_000 + ["y" * 5_000] + [f"token-{i}-{'z' * 80}" for i in range(30_000)]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT length(v), pg_column_size(v) FROM (SELECT %s::tsvector AS v) s", [tsvector_literal(many)]
        )
        lexemes, size = cursor.fetchone()
    assert lexemes > 5_000
    assert size < 1_048_575


@pytest.mark.django_db
@given(st.text(min_size=1, max_size=40))
def test_a_token_is_found_by_its_own_query(token: str) -> None:
    token = token.replace("\x00", "").encode("utf-8", "ignore").decode()
    if token:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT %s::tsvector @@ %s::tsquery", [tsvector_literal([token]), tsquery_literal([token, "other"])]
            )
            assert cursor.fetchone()[0]
