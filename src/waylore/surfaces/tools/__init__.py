"""The tools of an agent, shared by MCP and function calling."""
