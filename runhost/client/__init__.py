"""A client of the HTTP API for Python programs. Needs pydantic and httpx only; see `RunhostClient`."""

from runhost.client.client import RunhostClient
from runhost.client.errors import ApiProblem, ClientError, HostUnreachable, UnexpectedAnswer
from runhost.client.event_stream import EventStreamParser, EventTooLong, StreamEvent
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
from runhost.client.retries import RetryPolicy

__all__ = [
    "AgentRead",
    "ApiProblem",
    "BindingRead",
    "BindingRequest",
    "BindingScope",
    "ClientError",
    "EventReceipt",
    "EventStreamParser",
    "EventTooLong",
    "HostUnreachable",
    "Page",
    "RetryPolicy",
    "RunFilter",
    "RunRequest",
    "RunhostClient",
    "RunnerRead",
    "StreamEvent",
    "TranscriptItemRead",
    "UnexpectedAnswer",
]
