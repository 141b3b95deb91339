"""What the bridge reads from lines and events, without a process."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import decode_header_value, encode_header_value

from hindsight_site.mcp.bridge import messages
from hindsight_site.mcp.bridge.options import BadOptions, parse_url

texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(st.none() | st.booleans() | st.integers() | texts, lambda inner: st.lists(inner), max_leaves=5)


@given(st.binary() | texts.map(str.encode) | values.map(lambda value: json.dumps(value).encode()))
def test_any_line_is_read_or_refused(line) -> None:
    try:
        messages.read(line)
    except messages.NotAMessage as refused:
        problem = refused
    else:
        return
    assert problem.code in {-32700, -32600}


@given(st.dictionaries(st.sampled_from(["id", "method", "params", "jsonrpc"]), values | st.dictionaries(texts, values)))
def test_any_object_is_read(value) -> None:
    message = messages.read(json.dumps(value).encode())
    assert all(header.isascii() for header in messages.headers(message, "2025-11-25").values())


@given(texts)
def test_header_values_are_the_sdks(text) -> None:
    assert messages.header_value(text) == encode_header_value(text)
    assert decode_header_value(messages.header_value(text)) == text


@given(st.lists(texts.filter(lambda text: text and not set("\r\n") & set(text)), min_size=1))
def test_events_come_out_as_they_went_in(texts_sent) -> None:
    stream = "".join(f"event: message\ndata: {text}\n\n" for text in texts_sent).encode()
    assert [data.decode() for data in messages.events(stream.splitlines(keepends=True))] == texts_sent


def test_events_of_other_kinds_and_unfinished_ones_are_left_out() -> None:
    stream = b"event: ping\ndata: x\n\n: note\n\ndata: a\ndata: b\n\ndata: cut off\n"
    assert list(messages.events(stream.splitlines(keepends=True))) == [b"a\nb"]


@given(st.dictionaries(texts, values), st.sampled_from([None, 2]))
def test_an_answer_is_one_line_and_says_the_same(result, indent) -> None:
    sent = {"jsonrpc": "2.0", "id": 1, "result": result}
    line, value = messages.answer(json.dumps(sent, indent=indent).encode(), 1)
    assert b"\n" not in line
    assert json.loads(line) == value == sent
    assert messages.is_answer(value)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://a.example", "https://a.example"),
        ("https://a.example:443/", "https://a.example"),
        ("http://a.example:8000/below/mcp", "http://a.example:8000/below"),
        ("http://[::1]:8000/mcp/", "http://[::1]:8000"),
        ("HTTPS://Bücher.example", "https://xn--bcher-kva.example"),
    ],
)
def test_addresses(text, url) -> None:
    assert parse_url(text).url == url


@given(st.text())
def test_any_address_is_read_or_refused(text) -> None:
    try:
        parse_url(text)
    except BadOptions as refused:
        problem = refused
    else:
        return
    assert "\n" not in str(problem)


@pytest.mark.parametrize(
    ("url", "exposed"),
    [
        ("http://a.example", True),
        ("http://10.0.0.1", True),
        ("https://a.example", False),
        ("http://127.0.0.1", False),
        ("http://[::1]", False),
        ("http://localhost", False),
    ],
)
def test_who_can_read_the_token(url, exposed) -> None:
    assert parse_url(url).is_exposed is exposed


def test_the_package_holds_all_of_it_and_stands_alone() -> None:
    folder = Path(messages.__file__).parent
    files = {path.name for path in folder.glob("*.py")}
    targets = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert set(targets["wheel"]["only-include"]) == set(targets["sdist"]["only-include"]) == files
    for file in files:
        imported = re.findall(r"^(?:from|import) ([\w.]+)", (folder / file).read_text(), re.MULTILINE)
        roots = {name.partition(".")[0] for name in imported if not name.startswith(".")}
        assert roots <= sys.stdlib_module_names, file
