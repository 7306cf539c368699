"""A real MCP server of the tests: `python -m tests.providers.tool_server FOLDER [--http] [...]`.

`--json` answers without events, `--old` like servers before 2026, `--child` starts a process of its own.

It leaves in FOLDER what a test wants to know: `pid`, `url`, `child`, `calls`, and by
the tool `wait` `<name>-started`, `<name>-cancelled`.
"""

import argparse
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOLS = 1_000
PAGE = 300


class Tools:
    """What the server offers; a method per tool."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def list(self, _ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        start = int(params.cursor) if params and params.cursor else 0
        names = [("echo", "Echo"), *((f"tool-{n}", None) for n in range(1, TOOLS))][start : start + PAGE]
        tools = [
            types.Tool(name=name, title=title, description=f"About {name}", input_schema={"type": "object"})
            for name, title in names
        ]
        after = start + PAGE
        return types.ListToolsResult(tools=tools, next_cursor=str(after) if after < TOOLS else None)

    async def call(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        with (self.folder / "calls").open("a") as calls:
            calls.write(f"{params.name}\n")
        tool = getattr(self, f"tool_{params.name}", None)
        if tool is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}")
        return await tool(ctx, params.arguments or {})

    async def tool_echo(self, _ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        return types.CallToolResult(content=[], structured_content=arguments)

    async def tool_env(self, _ctx: Any, _arguments: dict[str, Any]) -> types.CallToolResult:
        return types.CallToolResult(content=[], structured_content=dict(os.environ))

    async def tool_meta(self, ctx: Any, _arguments: dict[str, Any]) -> types.CallToolResult:
        return types.CallToolResult(content=[], structured_content=dict(ctx.meta or {}))

    async def tool_parts(self, _ctx: Any, _arguments: dict[str, Any]) -> types.CallToolResult:
        image = types.ImageContent(type="image", data="AAAA", mime_type="image/png")
        return types.CallToolResult(content=[types.TextContent(type="text", text="你好\x00"), image])

    async def tool_fail(self, _ctx: Any, _arguments: dict[str, Any]) -> types.CallToolResult:
        error = types.TextContent(type="text", text="the tool is out of order")
        return types.CallToolResult(content=[error], is_error=True)

    async def tool_secret(self, _ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        raise MCPError(code=types.INVALID_PARAMS, message=f"the token {arguments['token']} is wrong")

    async def tool_huge(self, _ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text="x" * arguments["size"])])

    async def tool_number(self, _ctx: Any, _arguments: dict[str, Any]) -> types.CallToolResult:
        return types.CallToolResult(content=[], structured_content={"number": 2**70})

    async def tool_garbage(self, _ctx: Any, _arguments: dict[str, Any]) -> types.CallToolResult:
        sys.stdout.write("this is no message\n")
        sys.stdout.flush()
        return types.CallToolResult(content=[], structured_content={})

    async def tool_chatter(self, _ctx: Any, _arguments: dict[str, Any]) -> types.CallToolResult:
        # More than a pipe holds: a server whose standard error nobody reads would stop here.
        sys.stderr.write("chatter\n" * 100_000)
        return types.CallToolResult(content=[], structured_content={})

    async def tool_crash(self, _ctx: Any, _arguments: dict[str, Any]) -> types.CallToolResult:
        os._exit(3)

    async def tool_wait(self, _ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        name = arguments.get("name", "wait")
        (self.folder / f"{name}-started").touch()
        try:
            await anyio.sleep(600)
        except anyio.get_cancelled_exc_class():
            (self.folder / f"{name}-cancelled").touch()
            raise
        return types.CallToolResult(content=[])


async def on_streams(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def over_http(server: Server[Any], options: argparse.Namespace) -> None:
    import uvicorn

    listener = socket.create_server(("127.0.0.1", options.port))
    app: Any = server.streamable_http_app(json_response=options.json)
    (options.folder / "url").write_text(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
    config = uvicorn.Config(before(app, options), log_level="error", timeout_graceful_shutdown=0)
    uvicorn.Server(config).run(sockets=[listener])


def before(app: Any, options: argparse.Namespace) -> Any:
    """Refuse what servers before 2026 do not know, and whoever does not show the token."""

    async def checked(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await app(scope, receive, send)
        headers = dict(scope["headers"])
        if options.token and headers.get(b"authorization") != f"Bearer {options.token}".encode():
            return await refuse(send, 401)
        if options.old and headers.get(b"mcp-method") == b"server/discover":
            return await refuse(send, 400)
        return await app(scope, receive, send)

    return checked


async def refuse(send: Any, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token")
    for option in ("http", "json", "old", "child", "complain"):
        parser.add_argument(f"--{option}", action="store_true")
    options = parser.parse_args()
    if options.complain:
        sys.stderr.write(f"no such token {os.environ.get('TOOL_TOKEN')}\n")
        sys.exit(1)
    (options.folder / "pid").write_text(str(os.getpid()))
    if options.child:
        child = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
        (options.folder / "child").write_text(str(child.pid))
    tools = Tools(options.folder)
    server = Server("tests", on_list_tools=tools.list, on_call_tool=tools.call)
    if options.http:
        over_http(server, options)
    else:
        anyio.run(on_streams, server)


if __name__ == "__main__":
    main()
