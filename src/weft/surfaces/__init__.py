"""The ways in: command line, HTTP, MCP. A room that waits; only here may the environment be read."""
