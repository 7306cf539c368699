"""Gates whose methods a test defines."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from host_api.audit import AccessAudit
from host_api.definition import Call, MethodDefinition
from host_api.gate import HostApi
from host_api.limits import CallLimits
from host_api.requirements import OpenRun, Requirement
from host_api.services import HostServices
from runhost.protocol.host_api import HOST_METHODS
from stores.tables import access_audit


@dataclass(frozen=True)
class Gate:
    """A gate and its audit."""

    api: HostApi
    audit: AccessAudit
    services: HostServices

    async def accesses(self) -> list[dict[str, Any]]:
        """Write what waits and return all rows, oldest first."""
        await self.audit.flush()
        async with self.services.engine.connect() as connection:
            rows = await connection.execute(access_audit.select().order_by(access_audit.c.access_id))
            return [dict(row) for row in rows.mappings()]

    async def results(self) -> list[str]:
        return [row["result"] for row in await self.accesses()]


async def answer_nothing(call: Call, params: Any) -> Any:
    return HOST_METHODS["state_set"].returns()


def define(
    name: str, run: Callable[[Call, Any], Any] = answer_nothing, requirement: Requirement | None = None
) -> MethodDefinition:
    return MethodDefinition(name, requirement or OpenRun(), run)


def definitions(*own: MethodDefinition) -> list[MethodDefinition]:
    """Return a whole table: the given methods, and others that do nothing."""
    known = {definition.name: definition for definition in own}
    return [known.get(name) or define(name) for name in HOST_METHODS]


@asynccontextmanager
async def open_gate(
    services: HostServices, *own: MethodDefinition, limits: CallLimits | None = None
) -> AsyncIterator[Gate]:
    async with AccessAudit(services.pool) as audit:
        yield Gate(HostApi(services, audit, limits=limits, methods=definitions(*own)), audit, services)
