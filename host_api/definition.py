"""How a method of the host API is written down: its name, what it needs, and what it does."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from host_api.requirements import Requirement
from host_api.services import HostServices
from host_api.session import RunSession
from runhost.protocol import StrictModel
from runhost.protocol.host_api import HOST_METHODS, HostMethod

_Answer = TypeVar("_Answer", bound=StrictModel)


@dataclass(frozen=True, slots=True)
class Call:
    """A call that has passed the gate."""

    session: RunSession
    services: HostServices


@dataclass(frozen=True, slots=True)
class MethodDefinition:
    """A method that is built.

    Attributes:
        requirement: What the gate checks before `run` sees the call.
        run: An `async def` that answers, or an async generator for a method that streams.
        is_fenced: Its own statement does nothing and answers nothing once the attempt has ended, so that the
            session need not be read anew for it.
    """

    name: str
    requirement: Requirement
    run: Callable[[Call, Any], Any]
    is_fenced: bool = False

    @property
    def wire(self) -> HostMethod:
        """What it takes and answers."""
        return HOST_METHODS[self.name]


def host_method(
    name: str, requirement: Requirement, *, is_fenced: bool = False
) -> Callable[[Callable[[Call, Any], Awaitable[_Answer]]], MethodDefinition]:
    """Define a method that answers once: ``async def method(call, params) -> answer``."""

    def define(run: Callable[[Call, Any], Awaitable[_Answer]]) -> MethodDefinition:
        return MethodDefinition(name, requirement, run, is_fenced)

    return define


def host_stream(
    name: str, requirement: Requirement
) -> Callable[[Callable[[Call, Any], AsyncIterator[_Answer]]], MethodDefinition]:
    """Define a method that streams: an async generator of its events."""

    def define(run: Callable[[Call, Any], AsyncIterator[_Answer]]) -> MethodDefinition:
        return MethodDefinition(name, requirement, run)

    return define
