"""A client of the HTTP API for Python programs. Needs pydantic and httpx only.

`RunhostClient` for programs with an event loop, `SyncRunhostClient` for those without.
"""

from runhost.client.authorization_models import (
    AccessRead,
    Authorization,
    RevocationKind,
    RevocationRead,
    RunAuthorization,
)
from runhost.client.client import RunhostClient
from runhost.client.errors import ApiProblem, ClientError, HostUnreachable, UnexpectedAnswer
from runhost.client.knowledge_models import (
    DocumentRead,
    DocumentReceipt,
    DocumentUpload,
    KnowledgeBaseRead,
    KnowledgeBaseRequest,
    PassageConfig,
)
from runhost.client.models import (
    AgentRead,
    BindingRead,
    BindingRequest,
    BindingScope,
    EventReceipt,
    Page,
    RunFilter,
    RunnerRead,
    RunRequest,
    TranscriptItemRead,
)
from runhost.client.resource_models import (
    FileRead,
    ModelRead,
    ModelRequest,
    SkillRead,
    SkillRequest,
    SkillSummary,
    ToolList,
    ToolRead,
    ToolServerRead,
    ToolServerRequest,
    ToolSummary,
)
from runhost.client.retries import RetryPolicy
from runhost.client.sync import SyncRunhostClient
from runhost.sse import EventStreamParser, EventTooLong, StreamEvent

__all__ = [
    "AccessRead",
    "AgentRead",
    "ApiProblem",
    "Authorization",
    "BindingRead",
    "BindingRequest",
    "BindingScope",
    "ClientError",
    "DocumentRead",
    "DocumentReceipt",
    "DocumentUpload",
    "EventReceipt",
    "EventStreamParser",
    "EventTooLong",
    "FileRead",
    "HostUnreachable",
    "KnowledgeBaseRead",
    "KnowledgeBaseRequest",
    "ModelRead",
    "ModelRequest",
    "Page",
    "PassageConfig",
    "RetryPolicy",
    "RevocationKind",
    "RevocationRead",
    "RunAuthorization",
    "RunFilter",
    "RunRequest",
    "RunhostClient",
    "RunnerRead",
    "SkillRead",
    "SkillRequest",
    "SkillSummary",
    "StreamEvent",
    "SyncRunhostClient",
    "ToolList",
    "ToolRead",
    "ToolServerRead",
    "ToolServerRequest",
    "ToolSummary",
    "TranscriptItemRead",
    "UnexpectedAnswer",
]
