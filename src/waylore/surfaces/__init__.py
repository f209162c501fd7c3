"""The user interfaces: command line, HTTP, MCP, agent tools, telemetry, and the page of the explorer."""
