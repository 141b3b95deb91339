"""Clients of the MCP endpoint for the cast."""

from __future__ import annotations

import pytest

from tests.mcp.caller import LEGACY, MODERN, OLDEST, McpCaller


@pytest.fixture
def mcp(agent) -> McpCaller:
    """The agent's own client, with every scope, in the newest revision."""
    return McpCaller(agent.team, agent)


@pytest.fixture
def team_mcp(team) -> McpCaller:
    """A client of the team's own token, bound to no agent."""
    return McpCaller(team, None)


@pytest.fixture
def other_mcp(other_agent) -> McpCaller:
    return McpCaller(other_agent.team, other_agent)


@pytest.fixture(params=[MODERN, LEGACY, OLDEST])
def any_mcp(agent, request) -> McpCaller:
    """The agent's client in each revision in turn."""
    return McpCaller(agent.team, agent, version=request.param)
