"""What is sent: messages, functions and arguments in the endpoint's words."""

from typing import Any, Final

from providers.errors import ArgumentRefused
from providers.models import ModelEndpoint
from runhost.protocol import JsonObject, JsonValue
from runhost.protocol.content import ContentElement, Message, MessageContent
from runhost.protocol.host_api import InvokeModelParams, RerankParams, ToolFunction

# They are the host's to fill: a call that could set them would reach another model, or lose its usage.
RESERVED_ARGS: Final = frozenset({"model", "messages", "stream", "stream_options", "tools"})

# How the base64 of an image begins, by its format.
_IMAGE_TYPES: Final = {"/9j/": "image/jpeg", "iVBORw0KGgo": "image/png", "R0lGOD": "image/gif", "UklGR": "image/webp"}


def chat_body(endpoint: ModelEndpoint, params: InvokeModelParams, *, stream: bool) -> dict[str, Any]:
    """Return the body of a chat request.

    Raises:
        ArgumentRefused: A message holds what the interface has no form for, or `extra_args` a reserved argument.
    """
    extra = params.extra_args or {}
    for name in sorted(RESERVED_ARGS & extra.keys()):
        raise ArgumentRefused(f"extra_args.{name}", "is set by the host; leave it out")
    body: dict[str, Any] = {**endpoint.default_args, **extra, "model": endpoint.model_name}
    body["messages"] = chat_messages(params.messages)
    for name in RESERVED_ARGS - {"model", "messages"}:
        body.pop(name, None)
    if params.funcs:
        body["tools"] = chat_tools(params.funcs)
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def rerank_body(endpoint: ModelEndpoint, params: RerankParams) -> dict[str, Any]:
    """Return the body of a rerank request, as Jina, Cohere and vLLM take it."""
    body: dict[str, Any] = {**endpoint.default_args, "model": endpoint.model_name}
    body |= {"query": params.query, "documents": params.documents}
    # The whole order by default: who asks for fewer is served from it all the same.
    body["top_n"] = min(params.top_k or len(params.documents), len(params.documents))
    return body


def chat_messages(messages: list[Message]) -> list[JsonObject]:
    """Return messages as the interface takes them.

    Raises:
        ArgumentRefused: One holds what the interface has no form for.
    """
    return [_message(message, f"messages[{place}]") for place, message in enumerate(messages)]


def chat_tools(functions: list[ToolFunction]) -> list[JsonObject]:
    """Return functions as the interface takes them."""
    return [{"type": "function", "function": _function(function)} for function in functions]


def _message(message: Message, path: str) -> JsonObject:
    sent: JsonObject = {"role": message.role, "content": _content(message.content, path)}
    if message.tool_calls:
        sent["tool_calls"] = [call.model_dump() for call in message.tool_calls]
    elif sent["content"] is None:
        # Null is for messages of tool calls only.
        sent["content"] = ""
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    return sent


def _content(content: MessageContent | None, path: str) -> JsonValue:
    if content is None or isinstance(content, str):
        return content
    if len(content) == 1 and content[0].type == "text":
        # Templates of many local models take text only.
        return content[0].text
    return [_part(part, f"{path}.content[{place}]") for place, part in enumerate(content)]


def _part(part: ContentElement, path: str) -> JsonObject:
    if part.type == "text":
        return {"type": "text", "text": part.text}
    if part.image_url is not None and part.type == "image_url":
        return {"type": "image_url", "image_url": part.image_url.model_dump(exclude_none=True)}
    if part.image_base64 is not None and part.type == "image_base64":
        return {"type": "image_url", "image_url": {"url": _data_url(part.image_base64, _image_type(part.image_base64))}}
    if part.file_base64 is not None:
        file: JsonObject = {"file_data": _data_url(part.file_base64, "application/octet-stream")}
        return {"type": "file", "file": file | ({"filename": part.file_name} if part.file_name else {})}
    raise ArgumentRefused(path, "the model's interface takes no address of a file; send file_base64, or its text")


def _data_url(base64: str, media_type: str) -> str:
    return base64 if base64.startswith("data:") else f"data:{media_type};base64,{base64}"


def _image_type(base64: str) -> str:
    return next((type_ for start, type_ in _IMAGE_TYPES.items() if base64.startswith(start)), "image/png")


def _function(function: ToolFunction) -> JsonObject:
    sent: JsonObject = {"name": function.name}
    if function.description is not None:
        sent["description"] = function.description
    sent["parameters"] = function.parameters or {"type": "object", "properties": {}}
    return sent
