"""What a store can refuse.

StoreError
├── NotFound
│   ├── RunNotFound, EventNotFound, AgentNotFound, RunnerUnknown, ArtifactNotFound, BindingNotFound
│   ├── ModelNotFound, ToolServerNotFound, ToolNotFound, SkillNotFound, FileNotFound
│   ├── KnowledgeBaseNotFound, DocumentNotFound
├── Conflict
│   ├── EventConflict, RunTerminal, StaleAttempt, SequenceConflict, ArtifactConflict
│   ├── SecretNotKept, ToolServerChanged
└── NotGranted, IdempotencyKeyReused, IdempotencyKeyInUse
"""

from typing import ClassVar

from runhost.protocol import ErrorCode


class StoreError(Exception):
    """Base: a fact stands against what was asked.

    Attributes:
        code: The code an API answer carries (API.md).
    """

    code: ClassVar[ErrorCode]


class NotFound(StoreError):
    """Missing, or not visible from the caller's workspace; the two are never told apart."""

    code = ErrorCode.NOT_FOUND


class RunNotFound(NotFound):
    """No such run in the workspace."""

    code = ErrorCode.RUN_NOT_FOUND


class EventNotFound(NotFound):
    """No such event in the workspace."""


class AgentNotFound(NotFound):
    """No such agent in the workspace."""


class BindingNotFound(NotFound):
    """No such binding in the workspace."""


class RunnerUnknown(NotFound):
    """No worker has registered this runner."""


class ArtifactNotFound(NotFound):
    """No such artifact in the workspace, or it has expired."""


class ModelNotFound(NotFound):
    """No such model in the workspace."""


class ToolServerNotFound(NotFound):
    """No such tool server in the workspace."""


class ToolNotFound(NotFound):
    """No such tool in the workspace."""


class SkillNotFound(NotFound):
    """No such skill in the workspace."""


class FileNotFound(NotFound):
    """No such file in the workspace."""


class KnowledgeBaseNotFound(NotFound):
    """No such knowledge base in the workspace."""


class DocumentNotFound(NotFound):
    """No such document in the knowledge base."""


class Conflict(StoreError):
    """The stored fact and the request contradict each other."""


class EventConflict(Conflict):
    """The event id is known with other content (D-21)."""

    code = ErrorCode.EVENT_CONFLICT


class RunTerminal(Conflict):
    """The run, or the attempt that writes, has ended (INV-6)."""

    code = ErrorCode.RUN_TERMINAL


class StaleAttempt(Conflict):
    """A newer attempt holds the fence (INV-5)."""

    code = ErrorCode.STALE_ATTEMPT


class SequenceConflict(Conflict):
    """A source sequence is known with other content (D-22)."""

    code = ErrorCode.SEQUENCE_CONFLICT


class ArtifactConflict(Conflict):
    """The artifact id is known with other content (F-23)."""

    code = ErrorCode.INVALID_ARGUMENT


class NotGranted(StoreError):
    """A run is to lose what its snapshot never held (D-15)."""

    code = ErrorCode.INVALID_ARGUMENT


class SecretNotKept(Conflict):
    """A stored secret was given for another address than the entry is to have."""

    code = ErrorCode.INVALID_ARGUMENT


class ToolServerChanged(Conflict):
    """A tool server was changed while it was asked for its tools."""

    code = ErrorCode.INVALID_ARGUMENT


class IdempotencyKeyReused(StoreError):
    """The idempotency key was used with another request."""

    code = ErrorCode.IDEMPOTENCY_KEY_REUSED


class IdempotencyKeyInUse(StoreError):
    """Another request with the idempotency key is being answered right now."""

    code = ErrorCode.IDEMPOTENCY_KEY_IN_USE
