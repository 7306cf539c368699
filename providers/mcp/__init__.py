"""Tools of MCP servers, as programs of their own or over HTTP (PROTOCOL 9.2)."""

from providers.mcp.policy import StdioPolicy
from providers.mcp.provider import McpToolProvider

__all__ = ["McpToolProvider", "StdioPolicy"]
