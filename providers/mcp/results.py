"""Tools and their results, in our words."""

import json
from typing import Any

from mcp_types import CallToolResult, Tool
from pydantic import ValidationError

from providers.errors import ArgumentRefused, ProviderError
from runhost.protocol import JsonObject, describe_validation
from runhost.protocol.host_api import ToolDetail, ToolResult


def read_tool(tool: Tool) -> ToolDetail | None:
    """Return a tool, None for one that no run could name."""
    title = tool.title or (tool.annotations.title if tool.annotations else None)
    try:
        return ToolDetail(
            tool_name=tool.name, human_desc=title, description=tool.description, parameters=tool.input_schema
        )
    except ValidationError:
        return None


def read_result(result: CallToolResult) -> ToolResult:
    """Return a result: its structured content, or where it has none, its list of contents as they are.

    Raises:
        ProviderError: It holds what is no JSON of ours, such as an integer of more than 64 bits.
    """
    value: Any = result.structured_content
    if value is None:
        value = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
    try:
        return ToolResult(result=value, is_error=result.is_error)
    except ValidationError as error:
        raise ProviderError(f"The tool's result cannot be passed on: {describe_validation(error)}.") from None


def check_parameters(parameters: JsonObject) -> None:
    """See that parameters can be sent as JSON in UTF-8.

    Raises:
        ArgumentRefused: They hold half of a surrogate pair, which has no UTF-8.
    """
    try:
        json.dumps(parameters, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ArgumentRefused("parameters", "hold a lone surrogate, which no tool server can be sent") from None
