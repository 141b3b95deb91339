"""PostgreSQL away, restarting in the middle of a request, or too slow: 503 for everybody, and nothing of its words."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import InternalError, OperationalError, connections
from django.test import Client
from django.urls import reverse

from hindsight_site import outages
from tests import factories

pytestmark = pytest.mark.django_db
TOKEN = "hs_aaaaaaaa_" + "A" * 43
DRIVERS_WORDS = ("psycopg", "OperationalError", "connection to server", "Traceback", "statement timeout")

PROGRAMS: list[tuple[str, str, dict[str, str]]] = [
    ("get", "/api/v1/me", {"Authorization": f"Bearer {TOKEN}"}),
    ("post", "/api/v1/memories", {"Authorization": f"Bearer {TOKEN}"}),
    ("post", "/api/v1/auth/token", {"Authorization": f"Bearer {TOKEN}"}),
    ("get", "/.well-known/jwks.json", {}),
    ("post", "/oauth/token", {}),
]
FORM = {"grant_type": "client_credentials", "client_id": TOKEN[:11], "client_secret": TOKEN}
PAGES = ["overview", "memories", "account", "login", "account_signup", "account_reset_password"]


@pytest.fixture
def in_thread() -> Iterator[Callable]:
    """`in_thread(spoil, ask)` calls `ask` where the database connection is one that `spoil` was given."""

    def run(spoil: Callable[[Any], None], ask: Callable[[], Any]) -> Any:
        answers = []

        def work() -> None:
            connection = connections["default"]  # a thread has its own
            connection.settings_dict = {**connection.settings_dict}
            spoil(connection)
            try:
                answers.append(ask())
            finally:
                connection.close()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return answers[0]

    return run


def away(connection: Any) -> None:
    """As if PostgreSQL were not running: a port at which nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        connection.settings_dict.update({"HOST": "127.0.0.1", "PORT": str(unused.getsockname()[1])})


def dying_at(query: int) -> Callable[[Any], None]:
    """As if PostgreSQL were restarted before that query of the request."""

    def spoil(connection: Any) -> None:
        count = 0

        def kill_once(execute: Any, *arguments: Any) -> Any:
            nonlocal count
            count += 1
            if count == query:
                with psycopg.connect(**connections["default"].get_connection_params(), autocommit=True) as other:
                    other.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
            return execute(*arguments)

        connection.execute_wrappers.append(kill_once)

    return spoil


def slow_at(query: int) -> Callable[[Any], None]:
    """As if that query of the request took longer than a statement may."""

    def spoil(connection: Any) -> None:
        count = 0

        def too_long(execute: Any, *arguments: Any) -> Any:
            nonlocal count
            count += 1
            if count == query:
                with connection.connection.cursor() as cursor:
                    cursor.execute("SET statement_timeout = '10ms'")
                execute("SELECT pg_sleep(5)", None, False, arguments[-1])
            return execute(*arguments)

        connection.execute_wrappers.append(too_long)

    return spoil


def check_words(answer: Any) -> None:
    text = answer.content.decode()
    assert not [word for word in DRIVERS_WORDS if word in text], text
    assert int(answer["Retry-After"]) > 0
    assert answer["X-Request-ID"]


def check_program(answer: Any, path: str) -> None:
    assert answer.status_code == 503, answer.content
    check_words(answer)
    body = answer.json()
    if path == "/oauth/token":
        assert set(body) == {"error", "error_description"}
        assert body["error"] == "temporarily_unavailable"
        return
    assert answer["Content-Type"] == "application/problem+json"
    assert (body["status"], body["code"]) == (503, "unavailable")
    assert body["request_id"] == answer["X-Request-ID"]


def check_page(answer: Any) -> None:
    assert answer.status_code == 503, answer.content
    assert answer["Content-Type"].startswith("text/html")
    check_words(answer)
    assert "One moment" in answer.content.decode()


def client() -> Client:
    return Client(raise_request_exception=False)


def call(method: str, path: str, headers: dict[str, str]) -> Any:
    if path == "/oauth/token":
        return client().post(path, FORM and "&".join(f"{k}={v}" for k, v in FORM.items()),
                             content_type="application/x-www-form-urlencoded")  # fmt: skip
    return client().generic(method.upper(), path, "{}", content_type="application/json", headers=headers)


@pytest.mark.parametrize(("method", "path", "headers"), PROGRAMS, ids=[path for _, path, _ in PROGRAMS])
def test_programs_while_it_is_away(in_thread, method, path, headers) -> None:
    check_program(in_thread(away, lambda: call(method, path, headers)), path)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("has_session", [True, False])
def test_pages_while_it_is_away(in_thread, alice, browse, name, has_session) -> None:
    session = browse(alice).cookies if has_session else {}

    def visit() -> Any:
        visitor = client()
        visitor.cookies.update(session)
        return visitor.get(reverse(name))

    answer = in_thread(away, visit)
    if not has_session and name in {"login", "account_reset_password"} and answer.status_code == 200:
        return  # asks nothing of the database yet
    check_page(answer)


def test_what_needs_no_database_goes_on(in_thread) -> None:
    for path in ("/healthz", "/static/css/base.css", "/login/"):
        answer = in_thread(away, lambda path=path: client().get(path))
        assert answer.status_code == 200, path
        answer.close()


def test_forms_while_it_is_away(in_thread) -> None:
    form = {"username": "alice@acme.test", "password": factories.PASSWORD}
    check_page(in_thread(away, lambda: client().post(reverse("login"), form)))


@pytest.mark.parametrize("spoil", [dying_at, slow_at])
@pytest.mark.parametrize("query", [1, 2, 3])
@pytest.mark.parametrize(("method", "path", "headers"), PROGRAMS, ids=[path for _, path, _ in PROGRAMS])
def test_programs_in_the_middle_of_a_request(in_thread, spoil, query, method, path, headers) -> None:
    seen = []

    def counted(connection: Any) -> None:
        spoil(query)(connection)
        connection.execute_wrappers.append(lambda execute, *rest: (seen.append(1), execute(*rest))[1])

    answer = in_thread(counted, lambda: call(method, path, headers))
    if len(seen) < query:
        assert answer.status_code in {200, 400, 401}, "the request was over before"
    else:
        check_program(answer, path)


@pytest.mark.parametrize("spoil", [dying_at, slow_at])
def test_a_page_in_the_middle_of_a_request(in_thread, spoil) -> None:
    def with_a_session() -> Any:
        visitor = client()
        visitor.cookies["sessionid"] = "abcdefghijklmnopqrstuvwxyz012345"
        return visitor.get(reverse("overview"))

    check_page(in_thread(spoil(1), with_a_session))


def test_the_next_request_finds_it_again(in_thread) -> None:
    def twice() -> tuple[int, int]:
        return tuple(call(*PROGRAMS[0]).status_code for _ in range(2))

    assert in_thread(dying_at(2), twice) == (503, 401)


def raised(kind: type[Exception], sqlstate: str) -> Exception:
    error = kind("words")
    error.__cause__ = psycopg.errors.lookup(sqlstate)("words")
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (raised(OperationalError, "57P01"), True),  # the server is being shut down
        (raised(OperationalError, "53300"), True),  # too many clients
        (raised(OperationalError, "40P01"), True),  # a deadlock
        (raised(InternalError, "25006"), True),  # a standby
        (raised(InternalError, "25P02"), False),  # a query after a failed one: our own fault
        (raised(OperationalError, "54000"), False),  # over a limit, and will be again
        (ValueError("words"), False),
        (None, False),
    ],
)
def test_which_errors_are_outages(error, expected) -> None:
    assert outages.is_outage(error) == expected
