"""The examples in docs/examples run as they stand, against a real server and a model that a child could be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hindsight_site import connect
from hindsight_site.accounts.tenancy import team_transaction
from memories.models import Feedback
from reflection import tasks
from reflection.models import Reflection, Step
from tests import factories

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
# What wants other libraries than ours has a place of its own, filled by `make test`.
LANGCHAIN = ROOT / ".venv-examples" / "bin" / "python"
FILL = "run: sh .ci/venv docs/examples/langchain/requirements.txt .venv-examples"
TASK = "Export the invoices of March 2026"


class Model(BaseHTTPRequestHandler):
    """A model with tools: takes a month's name for granted unless it reads, or is told, otherwise."""

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert {"export_invoices", "hindsight_recall"} <= {tool["function"]["name"] for tool in asked["tools"]}
        message = self.answer(asked["messages"])
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
        body = {"id": "c", "object": "chat.completion", "created": 0, "model": "child", "choices": [choice]}
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def answer(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        last = messages[-1]
        if last["role"] == "tool" and "Error" not in last["content"]:
            return {"content": "412 invoices are exported."}
        month = "2026-03" if "YYYY-MM" in messages[0]["content"] + last["content"] else "March 2026"
        function = {"name": "export_invoices", "arguments": json.dumps({"month": month})}
        return {
            "content": None,
            "tool_calls": [{"id": f"call{len(messages)}", "type": "function", "function": function}],
        }

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def model() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


def run(name: str, python: Path | str = sys.executable, **environment: str) -> str:
    done = subprocess.run(
        [str(python), str(EXAMPLES / name), TASK],
        capture_output=True, text=True, timeout=90, env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_samples_of_page_and_manual(live_server, settings, agent) -> None:
    """What people copy runs as it stands, with their own address and token."""
    settings.SITE_URL = live_server.url
    secret = factories.token(agent.team, agent, ["memory:read"])
    manual = (EXAMPLES.parent / "mcp.md").read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    manual = manual.replace("http://127.0.0.1:8000", live_server.url).replace("hs_…", secret)
    sample = next(one["code"] for one in connect.samples(agent) if one["label"] == "MCP from Python")
    for code in (manual, sample):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
            env={**os.environ, "HINDSIGHT_TOKEN": secret}, check=False,
        )  # fmt: skip
        assert done.stdout.startswith("No match"), done.stderr[-3000:]


def test_the_smallest_program(live_server, settings, agent) -> None:
    settings.SITE_URL = live_server.url
    secret = factories.token(agent.team, agent, ["memory:read", "memory:write", "trace:write"])
    said = run("mcp_plain.py", HINDSIGHT_URL=live_server.url, HINDSIGHT_TOKEN=secret)
    assert "hindsight_record_trace" in said
    assert "Recalled: 1 memory" in said
    assert "YYYY-MM" in said
    assert ": queued." in said  # no worker runs here
    assert "… 2 of 3 s" in said


@pytest.mark.parametrize(
    ("name", "python"),
    [
        pytest.param("mcp_agent.py", sys.executable, id="plain"),
        pytest.param(
            "langchain/agent.py", LANGCHAIN, id="langchain",
            marks=pytest.mark.skipif(not LANGCHAIN.exists(), reason=FILL),
        ),
    ],
)  # fmt: skip
def test_an_agent_that_learns(live_server, settings, agent, model, name, python) -> None:
    settings.SITE_URL = live_server.url
    secret = factories.token(agent.team, agent, ["memory:read", "memory:write", "trace:write"])
    environment = {
        "HINDSIGHT_URL": live_server.url, "HINDSIGHT_TOKEN": secret, "OPENAI_BASE_URL": model,
        "OPENAI_API_KEY": "none", "MODEL": "child",
    }  # fmt: skip
    first = run(name, python, **environment)
    assert "Known before: nothing" in first
    assert "412 invoices are exported." in first
    with team_transaction(agent.team):
        reflection = Reflection.objects.of(agent.team).get()
        assert Step.objects.of(agent.team).filter(content__contains="YYYY-MM").exists()
    assert tasks.reflect(str(agent.team.pk), str(reflection.pk)) == "stored"

    second = run(name, python, **environment)
    assert "Known before: nothing" not in second
    assert "YYYY-MM" in second
    with team_transaction(agent.team):
        newest = Reflection.objects.of(agent.team).order_by("-created_at").first()
        said = list(newest.trace.steps.order_by("sequence").values_list("arguments", flat=True))
        assert {"month": "2026-03"} in said  # right at once
        assert {"month": "March 2026"} not in said
        assert Feedback.objects.of(agent.team).filter(adopted=True, success=True).exists()
