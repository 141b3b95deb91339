"""The bridge: MCP over standard input and output on one side, streamable HTTP on the other.

It stands alone, on the standard library: `pyproject.toml` beside this file makes it the command
`hindsight-mcp`, and `manage.py mcp_bridge` runs the same code.
"""
