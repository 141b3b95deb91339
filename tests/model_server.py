"""The fixture with the local model endpoint; imported by the conftest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes import ModelServer


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """A fresh OpenAI-compatible endpoint on loopback, with nothing scripted."""
    with ModelServer() as server:
        yield server
