"""The blocking twin of the client, for programs and threads without an event loop."""

from collections.abc import Generator
from typing import Self

from runhost.client.authorization_models import AccessRead, RevocationKind, RunAuthorization
from runhost.client.client import RunhostClient
from runhost.client.models import (
    AgentRead,
    BindingRead,
    BindingRequest,
    EventReceipt,
    Page,
    RunFilter,
    RunnerRead,
    RunRequest,
    TranscriptItemRead,
)
from runhost.client.retries import RetryPolicy
from runhost.client.sync_knowledge import SyncKnowledgeCalls
from runhost.client.sync_resources import SyncResourceCalls
from runhost.client.wires import BlockingWire, run_blocking
from runhost.protocol import AgentConfig, AgentEventEnvelope, AgentRun, AgentRunAttempt, AgentRunEvent, RunEventPage

_PATIENT = RetryPolicy()
_EVERYTHING = RunFilter()


class SyncRunhostClient(SyncResourceCalls, SyncKnowledgeCalls):
    """`RunhostClient` without `await`: the same methods, errors, retries and resumed streams; a context manager.

    Usable by many threads at once, and by code that has an event loop, which then stands still meanwhile::

        with SyncRunhostClient("http://127.0.0.1:8080", key) as client:
            run = client.create_run(RunRequest(agent_id="greeter", input=AgentInput(text="Hello")))
            for event in client.follow_run(run.run_id):
                ...

    Ctrl-C ends a call where it blocks: a request may have reached the host or not.

    Args:
        base_url: Address of the API, without `/v1`.
        key: A bearer key, as `runhost keys create` makes it.
        retry: How patient to be.

    Raises:
        ValueError: The address or the key cannot be one.
    """

    def __init__(self, base_url: str, key: str, *, retry: RetryPolicy = _PATIENT) -> None:
        self._client = RunhostClient(base_url, key, retry=retry, wire=BlockingWire)

    def __enter__(self) -> Self:
        """Return the client; it connects with its first call."""
        return self

    def __exit__(self, *exit_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        run_blocking(self._client.close())

    def send_event(self, envelope: AgentEventEnvelope, *, idempotency_key: str | None = None) -> EventReceipt:
        """Post an event; see `RunhostClient.send_event`."""
        return run_blocking(self._client.send_event(envelope, idempotency_key=idempotency_key))

    def create_run(self, request: RunRequest, *, idempotency_key: str | None = None) -> AgentRun:
        """Create a run of an agent; see `RunhostClient.create_run`."""
        return run_blocking(self._client.create_run(request, idempotency_key=idempotency_key))

    def get_run(self, run_id: str) -> AgentRun:
        """Read a run."""
        return run_blocking(self._client.get_run(run_id))

    def list_runs(
        self, which: RunFilter = _EVERYTHING, *, limit: int = 50, cursor: str | None = None
    ) -> Page[AgentRun]:
        """Read a page of the runs, newest first; at most 200."""
        return run_blocking(self._client.list_runs(which, limit=limit, cursor=cursor))

    def run_events(self, run_id: str, *, limit: int = 200, cursor: str | None = None) -> RunEventPage:
        """Read a page of a run's ledger, oldest first; see `RunhostClient.run_events`."""
        return run_blocking(self._client.run_events(run_id, limit=limit, cursor=cursor))

    def follow_run(self, run_id: str, *, after: int = 0) -> Generator[AgentRunEvent]:
        """Yield a run's ledger row by row until the run has ended; see `RunhostClient.follow_run`.

        Who stops early closes the generator (`contextlib.closing`), and with it the connection. A host that
        says nothing for 45 s counts as gone, so no wait is longer than that.
        """
        events = self._client.follow_run(run_id, after=after)

        async def step() -> AgentRunEvent | None:
            return await anext(events, None)

        try:
            while (event := run_blocking(step())) is not None:
                yield event
        finally:
            run_blocking(events.aclose())

    def cancel_run(self, run_id: str, *, reason: str | None = None, idempotency_key: str | None = None) -> AgentRun:
        """Ask for the end of a run; see `RunhostClient.cancel_run`."""
        return run_blocking(self._client.cancel_run(run_id, reason=reason, idempotency_key=idempotency_key))

    def get_authorization(self, run_id: str) -> RunAuthorization:
        """Read what a run may reach; see `RunhostClient.get_authorization`."""
        return run_blocking(self._client.get_authorization(run_id))

    def list_accesses(self, run_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[AccessRead]:
        """Read a page of the calls that a run made of the host API; see `RunhostClient.list_accesses`."""
        return run_blocking(self._client.list_accesses(run_id, limit=limit, cursor=cursor))

    def revoke_grant(
        self,
        run_id: str,
        kind: RevocationKind,
        resource_id: str | None = None,
        *,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> RunAuthorization:
        """Take a grant back from a run; see `RunhostClient.revoke_grant`."""
        return run_blocking(
            self._client.revoke_grant(run_id, kind, resource_id, reason=reason, idempotency_key=idempotency_key)
        )

    def attempts(self, run_id: str) -> Page[AgentRunAttempt]:
        """Read the attempts of a run, all of them, in order."""
        return run_blocking(self._client.attempts(run_id))

    def runners(self) -> Page[RunnerRead]:
        """Read what can be run, in order of the ids."""
        return run_blocking(self._client.runners())

    def put_agent(self, agent_id: str, config: AgentConfig) -> AgentRead:
        """Create an agent, or make this its next version; the same again changes nothing."""
        return run_blocking(self._client.put_agent(agent_id, config))

    def get_agent(self, agent_id: str) -> AgentRead:
        """Read the current version of an agent."""
        return run_blocking(self._client.get_agent(agent_id))

    def list_agents(self, *, limit: int = 50, cursor: str | None = None) -> Page[AgentRead]:
        """Read a page of the agents, in order of their ids; at most 200."""
        return run_blocking(self._client.list_agents(limit=limit, cursor=cursor))

    def put_binding(self, binding_id: str, binding: BindingRequest) -> BindingRead:
        """Create or replace a binding."""
        return run_blocking(self._client.put_binding(binding_id, binding))

    def list_bindings(self, *, limit: int = 50, cursor: str | None = None) -> Page[BindingRead]:
        """Read a page of the bindings, in order of their ids; at most 200."""
        return run_blocking(self._client.list_bindings(limit=limit, cursor=cursor))

    def transcript(
        self,
        conversation_id: str,
        *,
        bot_id: str | None = None,
        thread_id: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[TranscriptItemRead]:
        """Read a page of a conversation, newest first; see `RunhostClient.transcript`."""
        return run_blocking(
            self._client.transcript(conversation_id, bot_id=bot_id, thread_id=thread_id, limit=limit, cursor=cursor)
        )
