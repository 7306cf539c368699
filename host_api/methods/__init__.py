"""The methods of the host API, one module per subject. (Assembled by hand once all modules are there.)"""

import importlib
import pkgutil
from typing import Any

from host_api.definition import Call, MethodDefinition
from host_api.errors import not_found
from host_api.requirements import OpenRun
from runhost.protocol.host_api import HOST_METHODS


def _missing(name: str) -> MethodDefinition:
    async def run(call: Call, params: Any) -> Any:
        raise not_found("not built yet")

    return MethodDefinition(name, OpenRun(), run)


def _all() -> tuple[MethodDefinition, ...]:
    found: dict[str, MethodDefinition] = {}
    for module in pkgutil.iter_modules(__path__):
        for value in vars(importlib.import_module(f"host_api.methods.{module.name}")).values():
            if isinstance(value, MethodDefinition):
                found[value.name] = value
    return tuple(found.get(name) or _missing(name) for name in HOST_METHODS)


ALL_METHODS = _all()
