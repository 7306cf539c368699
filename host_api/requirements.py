"""What a call needs: one declared requirement per method, checked against the snapshot and nothing else (HOST 8.3)."""

from dataclasses import dataclass
from typing import Any, Protocol

from host_api.authorization import Authorization, ResourceKind
from host_api.errors import unauthorized


@dataclass(frozen=True, slots=True)
class Target:
    """What a call reaches for, in the words of the audit.

    Attributes:
        resource: Kind and id, such as `model:gpt`.
        scope: Operation, state scope or conversation.
    """

    resource: str | None = None
    scope: str | None = None


class Requirement(Protocol):
    """What the snapshot must hold for a method to be called with given parameters."""

    def target(self, params: Any) -> Target:
        """Name what the call reaches for, without judging it."""
        ...

    def check(self, authorization: Authorization, params: Any) -> None:
        """Let the call pass.

        Raises:
            HostCallError: `unauthorized`; the same words for what is not granted and what does not exist.
        """
        ...


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A valid session is enough (PROTOCOL 9.9)."""

    def target(self, params: Any) -> Target:
        """Name nothing."""
        return Target()

    def check(self, authorization: Authorization, params: Any) -> None:
        """Let every open run pass."""


@dataclass(frozen=True, slots=True)
class Granted:
    """A resource with an operation (H-A4). Of several operations, one is enough.

    Attributes:
        kind: Kind of the resource.
        field: Parameter that holds its id.
        operations: Any of these.
    """

    kind: ResourceKind
    field: str
    operations: frozenset[str]

    def target(self, params: Any) -> Target:
        """Name the resource and the operation."""
        return Target(f"{self.kind}:{getattr(params, self.field)}", "|".join(sorted(self.operations)))

    def check(self, authorization: Authorization, params: Any) -> None:
        """Look the resource up in the snapshot."""
        resource_id = getattr(params, self.field)
        if not authorization.operations(self.kind, resource_id) & self.operations:
            operations = " or ".join(sorted(self.operations))
            raise unauthorized(
                f"{self.field}: this run may not {operations} {resource_id!r}; ctx.resources lists what it may."
            )


@dataclass(frozen=True, slots=True)
class Available:
    """A pull API that is switched on in the snapshot (H-A6), within the run's own conversation (H-A7).

    Attributes:
        flag: Field of `ContextAPICapabilities`.
        conversation_field: Parameter that may name a conversation; only the run's own is granted.
        resource_field: Parameter that names what is read, for the audit.
    """

    flag: str
    conversation_field: str | None = None
    resource_field: str | None = None

    def target(self, params: Any) -> Target:
        """Name the API, and the conversation if one is given."""
        return Target(
            getattr(params, self.resource_field) if self.resource_field else self.flag,
            getattr(params, self.conversation_field) if self.conversation_field else None,
        )

    def check(self, authorization: Authorization, params: Any) -> None:
        """Look at the flag, then at the conversation."""
        if not getattr(authorization.available_apis, self.flag):
            raise unauthorized(f"This run may not use {self.flag}; ctx.context.available_apis says what it may.")
        if self.conversation_field is None:
            return
        asked = getattr(params, self.conversation_field)
        if asked is not None and asked != authorization.conversation_id:
            raise unauthorized(f"{self.conversation_field}: this run may read its own conversation only.")


@dataclass(frozen=True, slots=True)
class StateScopeOpen:
    """Host-owned state in a scope that is enabled and has an identity (H-S6)."""

    def target(self, params: Any) -> Target:
        """Name the key, or the prefix of a list, and the scope."""
        return Target(getattr(params, "key", None) or getattr(params, "prefix", None), params.scope)

    def check(self, authorization: Authorization, params: Any) -> None:
        """Look for the scope's key."""
        if not authorization.available_apis.state:
            raise unauthorized("This run may not use state; ctx.context.available_apis says what it may.")
        if params.scope not in authorization.state_context.scope_keys:
            raise unauthorized(
                f"scope: state of scope {params.scope!r} is not enabled for this run, or its event names nobody for it."
            )


@dataclass(frozen=True, slots=True)
class StorageOpen:
    """A storage area (H-A5).

    Attributes:
        area: `plugin` or `workspace`.
    """

    area: str

    def target(self, params: Any) -> Target:
        """Name the key and the area."""
        return Target(getattr(params, "key", None), self.area)

    def check(self, authorization: Authorization, params: Any) -> None:
        """Look at the flag and at the area."""
        storage = authorization.resources.storage
        is_open = storage.plugin_storage if self.area == "plugin" else storage.workspace_storage
        if not (authorization.available_apis.storage and is_open):
            raise unauthorized(f"This run may not use {self.area} storage; ctx.resources.storage says what it may.")
