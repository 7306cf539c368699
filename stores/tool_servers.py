"""Tool servers (MCP), and the tools that they offered when they were last asked (HOST 6, D-19)."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from sqlalchemy import RowMapping, Select, and_, case, delete, func, or_, select, true, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import JsonObject
from runhost.protocol.host_api import ToolDetail
from stores.errors import SecretNotKept, ToolNotFound, ToolServerChanged, ToolServerNotFound
from stores.registry import Registry
from stores.resource_tables import tool, tool_server
from stores.revocations import revoke_everywhere

Transport: TypeAlias = Literal["stdio", "streamable_http"]

MAX_TOOL_NAME_LENGTH: Final = 64
"""What the interfaces of models take as the name of a function."""

_SEPARATOR: Final = "__"
_DIGEST_LENGTH: Final = 8
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True)
class ToolServerRow:
    """A tool server.

    Attributes:
        server_id: Begins the names of its tools.
        transport: How it is reached: a program of its own, or over HTTP.
        command: The program and its arguments, for `stdio`.
        env: Environment of the program. Its values are secrets, as those of `headers`: they are in no answer,
            no log and no repr.
        url: Address, for `streamable_http`.
        headers: Headers of every request.
        enabled: Whether its tools can be granted.
        is_stale: Its tools are not what it said last: it was not asked since it was put, or did not answer.
        last_error: Why it did not answer.
        refreshed_at: When it last told its tools.
    """

    server_id: str
    transport: Transport
    command: list[str]
    env: dict[str, str] = field(repr=False)
    url: str | None
    headers: dict[str, str] = field(repr=False)
    enabled: bool
    is_stale: bool
    last_error: str | None
    refreshed_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class ToolRow:
    """A tool.

    Attributes:
        tool_name: What runs call it by, see `tool_name_for`.
        server_id: The server that offers it.
        remote_name: What the server calls it.
        description: What it does, for models.
        human_desc: What it does, for people.
        parameters: JSON schema of its arguments.
        enabled: Whether its server is.
    """

    tool_name: str
    server_id: str
    remote_name: str
    description: str | None
    human_desc: str | None
    parameters: JsonObject
    enabled: bool


def tool_name_for(server_id: str, remote_name: str) -> str:
    """Return the name of a tool: `<server_id>__<remote_name>`, which is a function name that models take.

    A name that holds other characters than letters, digits, `_` and `-`, or is too long, is cleaned and cut,
    and gets a digest of what it was, so that two of them do not become one.
    """
    name = f"{server_id}{_SEPARATOR}{remote_name}"
    clean = _NOT_IN_NAMES.sub("_", name)
    if clean == name and len(name) <= MAX_TOOL_NAME_LENGTH:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{clean[: MAX_TOOL_NAME_LENGTH - _DIGEST_LENGTH - 1]}-{digest}"


class ToolServerStore:
    """Tool servers and tools of one workspace."""

    def __init__(self, connection: AsyncConnection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id
        self._rows = Registry(
            connection, workspace_id, table=tool_server, key=tool_server.c.server_id, read=_read_server
        )

    async def put(self, new: Mapping[str, Any]) -> ToolServerRow:
        """Create a tool server, or change it.

        Its tools stay what they are until it is asked for them. Those of one that is disabled are taken back
        from open runs.

        Args:
            new: ``server_id``, ``transport``, ``command`` or ``url``, and perhaps ``env``, ``headers`` and
                ``enabled``. What is left out keeps what is stored.

        Raises:
            SecretNotKept: The address changes, and the secrets that are stored for the old one are left out:
                they are never sent to another address than they were given for.
        """
        statement = insert(tool_server).values(workspace_id=self._workspace_id, **new)
        excluded = statement.excluded
        same_program = tool_server.c.command == excluded.command if "command" in new else true()
        same_url = tool_server.c.url.is_not_distinct_from(excluded.url) if "url" in new else true()
        may_keep = and_(
            true() if "env" in new else or_(tool_server.c.env == {}, same_program),
            true() if "headers" in new else or_(tool_server.c.headers == {}, same_url),
        )
        row = await self._connection.execute(
            statement.on_conflict_do_update(
                index_elements=[tool_server.c.workspace_id, tool_server.c.server_id],
                set_={
                    **new,
                    "is_stale": case((and_(same_program, same_url), tool_server.c.is_stale), else_=True),
                    "updated_at": func.now(),
                },
                where=may_keep,
            ).returning(tool_server)
        )
        found = row.mappings().one_or_none()
        if found is None:
            raise SecretNotKept(
                f"Tool server {new['server_id']!r} has env or headers for another address; "
                "send them for this one, or null for none."
            )
        if not found["enabled"]:
            await self._revoke(await self._tool_names(found["server_id"]), "The tool's server was disabled.")
        return _read_server(found)

    async def get(self, server_id: str) -> ToolServerRow:
        """Return a tool server.

        Raises:
            ToolServerNotFound: There is none in this workspace.
        """
        found = await self._rows.find(server_id)
        if found is None:
            raise _server_not_found(server_id)
        return found

    async def delete(self, server_id: str) -> None:
        """Delete a tool server with its tools, and take these back from open runs.

        Raises:
            ToolServerNotFound: There is none in this workspace.
        """
        # Locked before its tools are read: who replaces them meanwhile comes before or after all of this.
        locked = await self._connection.scalar(
            select(tool_server.c.server_id)
            .where(tool_server.c.workspace_id == self._workspace_id, tool_server.c.server_id == server_id)
            .with_for_update()
        )
        if locked is None:
            raise _server_not_found(server_id)
        names = await self._tool_names(server_id)
        await self._rows.delete(server_id)
        await self._revoke(names, "The tool's server was deleted.")

    async def replace_tools(
        self, server_id: str, tools: Sequence[ToolDetail], *, asked_in: datetime | None = None
    ) -> list[ToolRow]:
        """Make these the tools of a server, and return them; others are taken back from open runs.

        Args:
            server_id: The server.
            tools: What it offers, under the names that it gives; of two with one name the first counts.
            asked_in: ``updated_at`` of the server that was asked.

        Raises:
            ToolServerNotFound: There is none in this workspace.
            ToolServerChanged: It is another one by now than the one that was asked.
        """
        changed = await self._connection.scalar(
            update(tool_server)
            .where(tool_server.c.workspace_id == self._workspace_id, tool_server.c.server_id == server_id)
            .values(is_stale=False, last_error=None, refreshed_at=func.now())
            .returning(tool_server.c.updated_at)
        )
        if changed is None:
            raise _server_not_found(server_id)
        if asked_in not in {None, changed}:
            raise ToolServerChanged(f"Tool server {server_id!r} was changed while it was asked; refresh it again.")
        offered = {tool_name_for(server_id, detail.tool_name): detail for detail in reversed(tools)}
        gone = await self._connection.scalars(
            delete(tool)
            .where(tool.c.workspace_id == self._workspace_id, tool.c.server_id == server_id)
            .returning(tool.c.tool_name)
        )
        await self._revoke([name for name in gone if name not in offered], "The tool is no longer offered.")
        if offered:
            await self._connection.execute(
                insert(tool),
                [
                    {
                        "workspace_id": self._workspace_id,
                        "tool_name": name,
                        "server_id": server_id,
                        "remote_name": detail.tool_name,
                        "description": detail.description,
                        "human_desc": detail.human_desc,
                        "parameters": detail.parameters,
                    }
                    for name, detail in offered.items()
                ],
            )
        return await self.list_tools(server_id=server_id, limit=len(offered))

    async def mark_stale(self, server_id: str, error: str) -> None:
        """Note that a server did not tell its tools; those that it told last stay (D-19).

        Args:
            server_id: The server; one that is gone by now is no error.
            error: Why, for people, without secrets.
        """
        await self._connection.execute(
            update(tool_server)
            .where(tool_server.c.workspace_id == self._workspace_id, tool_server.c.server_id == server_id)
            .values(is_stale=True, last_error=error)
        )

    async def get_tool(self, tool_name: str) -> ToolRow:
        """Return a tool.

        Raises:
            ToolNotFound: There is none in this workspace.
        """
        rows = await self._connection.execute(self._tools().where(tool.c.tool_name == tool_name))
        found = rows.mappings().one_or_none()
        if found is None:
            raise ToolNotFound(f"There is no tool {tool_name!r} in this workspace.")
        return _read_tool(found)

    async def list_tools(self, *, server_id: str | None = None, after: str = "", limit: int) -> list[ToolRow]:
        """Return tools, of one server or of all, in order of their names, from behind ``after``."""
        query = self._tools().where(tool.c.tool_name > after)
        if server_id is not None:
            query = query.where(tool.c.server_id == server_id)
        rows = await self._connection.execute(query.order_by(tool.c.tool_name).limit(limit))
        return [_read_tool(row) for row in rows.mappings()]

    async def list(self, *, after: str = "", limit: int) -> list[ToolServerRow]:
        """Return tool servers in order of their ids, from behind ``after``."""
        return await self._rows.list(after=after, limit=limit)

    async def _tool_names(self, server_id: str) -> Sequence[str]:
        names = await self._connection.scalars(
            select(tool.c.tool_name).where(tool.c.workspace_id == self._workspace_id, tool.c.server_id == server_id)
        )
        return names.all()

    async def _revoke(self, tool_names: Sequence[str], reason: str) -> None:
        for name in tool_names:
            await revoke_everywhere(self._connection, self._workspace_id, "tool", name, reason)

    def _tools(self) -> Select[Any]:
        return (
            select(tool, tool_server.c.enabled)
            .join(
                tool_server,
                and_(tool_server.c.workspace_id == tool.c.workspace_id, tool_server.c.server_id == tool.c.server_id),
            )
            .where(tool.c.workspace_id == self._workspace_id)
        )


def _read_server(row: RowMapping) -> ToolServerRow:
    return ToolServerRow(**{name: value for name, value in row.items() if name != "workspace_id"})


def _read_tool(row: RowMapping) -> ToolRow:
    return ToolRow(**{name: value for name, value in row.items() if name != "workspace_id"})


def _server_not_found(server_id: str) -> ToolServerNotFound:
    return ToolServerNotFound(f"There is no tool server {server_id!r} in this workspace.")
