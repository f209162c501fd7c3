"""What an agent can call: shared by MCP and function calling."""
