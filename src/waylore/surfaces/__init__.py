"""The ways in: command line, and in time HTTP and MCP. Only here may the environment be read."""
