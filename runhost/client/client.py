"""The client: one method per thing that a host can be asked for."""

import uuid
from collections.abc import AsyncGenerator, Mapping
from typing import Self

from runhost.client.authorization_models import AccessRead, RevocationKind, RunAuthorization
from runhost.client.exchange import Exchange, segment
from runhost.client.following import RunFollower
from runhost.client.knowledge import KnowledgeCalls
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
from runhost.client.resources import ResourceCalls
from runhost.client.retries import RetryPolicy
from runhost.client.wires import AsyncWire, WireFactory
from runhost.protocol import (
    AgentConfig,
    AgentEventEnvelope,
    AgentRun,
    AgentRunAttempt,
    AgentRunEvent,
    JsonObject,
    RunEventPage,
)

_PATIENT = RetryPolicy()
_EVERYTHING = RunFilter()


class RunhostClient(ResourceCalls, KnowledgeCalls):
    """Talks to one host with one key; an async context manager. Usable by many tasks at once.

    `SyncRunhostClient` is the same for programs without an event loop.

    Calls that fail on the way, or that the host asks to repeat, are repeated: all of them are safe to
    repeat, writes because they carry an idempotency key. Every method raises `ApiProblem` where the host
    refuses, `HostUnreachable` where nobody answers after all tries, and `UnexpectedAnswer` where somebody
    else answers::

        async with RunhostClient("http://127.0.0.1:8080", key) as client:
            run = await client.create_run(RunRequest(agent_id="greeter", input=AgentInput(text="Hello")))
            async for event in client.follow_run(run.run_id):
                ...

    Args:
        base_url: Address of the API, without `/v1`.
        key: A bearer key, as `runhost keys create` makes it.
        retry: How patient to be.
        wire: How requests leave; there is nothing to choose from but what `SyncRunhostClient` needs.

    Raises:
        ValueError: The address or the key cannot be one.
    """

    def __init__(
        self, base_url: str, key: str, *, retry: RetryPolicy = _PATIENT, wire: WireFactory = AsyncWire
    ) -> None:
        self._exchange = Exchange(wire(base_url, key), retry)

    async def __aenter__(self) -> Self:
        """Return the client; it connects with its first call."""
        return self

    async def __aexit__(self, *exit_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections; a second call does nothing."""
        await self._exchange.close()

    async def send_event(self, envelope: AgentEventEnvelope, *, idempotency_key: str | None = None) -> EventReceipt:
        """Post an event; what is answered is committed (INV-1).

        Args:
            envelope: The event. Sent twice under one event id, it is taken once (D-21).
            idempotency_key: Of the call; one is made if it is missing.
        """
        # As it was written: what is left out stays for the host to fill.
        body = envelope.model_dump(mode="json", exclude_unset=True)
        return await self._exchange.call(
            EventReceipt, "POST", "/v1/events", body=body, idempotency_key=_key(idempotency_key)
        )

    async def create_run(self, request: RunRequest, *, idempotency_key: str | None = None) -> AgentRun:
        """Create a run of an agent.

        Args:
            request: What to run.
            idempotency_key: The same request under the same key creates one run within 24 h. One is made for
                the tries of this call if it is missing.
        """
        body = request.model_dump(mode="json", exclude_unset=True)
        return await self._exchange.call(AgentRun, "POST", "/v1/runs", body=body, idempotency_key=_key(idempotency_key))

    async def get_run(self, run_id: str) -> AgentRun:
        """Read a run."""
        return await self._exchange.call(AgentRun, "GET", _run_path(run_id))

    async def list_runs(
        self, which: RunFilter = _EVERYTHING, *, limit: int = 50, cursor: str | None = None
    ) -> Page[AgentRun]:
        """Read a page of the runs, newest first; at most 200."""
        filters = which.model_dump(mode="json", exclude_none=True)
        return await self._exchange.call(Page[AgentRun], "GET", "/v1/runs", query=_paging(limit, cursor, filters))

    async def run_events(self, run_id: str, *, limit: int = 200, cursor: str | None = None) -> RunEventPage:
        """Read a page of a run's ledger, oldest first; the last page has a cursor too, for what comes later."""
        path = f"{_run_path(run_id)}/events"
        return await self._exchange.call(RunEventPage, "GET", path, query=_paging(limit, cursor))

    def follow_run(self, run_id: str, *, after: int = 0) -> AsyncGenerator[AgentRunEvent]:
        """Yield a run's ledger row by row, what is there and what comes, until the run has ended.

        Each row comes once and in order, however often the connection is lost meanwhile. Who stops early
        closes the generator (`contextlib.aclosing`), and with it the connection.

        Args:
            run_id: The run.
            after: Sequence of the last row that the caller has; only later ones are yielded.
        """
        return RunFollower(self._exchange, run_id, after).events()

    async def cancel_run(
        self, run_id: str, *, reason: str | None = None, idempotency_key: str | None = None
    ) -> AgentRun:
        """Ask for the end of a run, which comes soon after; returns the run as it is now.

        Raises:
            ApiProblem: `run_terminal`, it has ended already; and others.
        """
        body: JsonObject = {} if reason is None else {"reason": reason}
        path = f"{_run_path(run_id)}/cancel"
        return await self._exchange.call(AgentRun, "POST", path, body=body, idempotency_key=_key(idempotency_key))

    async def get_authorization(self, run_id: str) -> RunAuthorization:
        """Read what a run may reach: what it was granted, what was taken back, what is left."""
        return await self._exchange.call(RunAuthorization, "GET", f"{_run_path(run_id)}/authorization")

    async def list_accesses(self, run_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[AccessRead]:
        """Read a page of the calls that a run made of the host API, newest first; at most 200."""
        path = f"{_run_path(run_id)}/accesses"
        return await self._exchange.call(Page[AccessRead], "GET", path, query=_paging(limit, cursor))

    async def revoke_grant(
        self,
        run_id: str,
        kind: RevocationKind,
        resource_id: str | None = None,
        *,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> RunAuthorization:
        """Take a grant back from a run that has not ended; returns what is left. Again changes nothing.

        Args:
            run_id: The run.
            kind: What kind of thing; `run` takes everything.
            resource_id: Which one; None for the kind `run` alone.
            reason: Why, at most 1,000 characters.
            idempotency_key: Of the call; one is made if it is missing.

        Raises:
            ApiProblem: `run_terminal`, it has ended already; `invalid_argument`, it was never granted that;
                and others.
        """
        body: JsonObject = {"kind": kind, "id": resource_id, "reason": reason}
        path = f"{_run_path(run_id)}/authorization/revoke"
        key = _key(idempotency_key)
        return await self._exchange.call(RunAuthorization, "POST", path, body=body, idempotency_key=key)

    async def attempts(self, run_id: str) -> Page[AgentRunAttempt]:
        """Read the attempts of a run, all of them, in order."""
        return await self._exchange.call(Page[AgentRunAttempt], "GET", f"{_run_path(run_id)}/attempts")

    async def runners(self) -> Page[RunnerRead]:
        """Read what can be run, in order of the ids."""
        return await self._exchange.call(Page[RunnerRead], "GET", "/v1/runners")

    async def put_agent(self, agent_id: str, config: AgentConfig) -> AgentRead:
        """Create an agent, or make this its next version; the same again changes nothing."""
        body = config.model_dump(mode="json", exclude_unset=True)
        return await self._exchange.call(AgentRead, "PUT", f"/v1/agents/{segment(agent_id)}", body=body)

    async def get_agent(self, agent_id: str) -> AgentRead:
        """Read the current version of an agent."""
        return await self._exchange.call(AgentRead, "GET", f"/v1/agents/{segment(agent_id)}")

    async def list_agents(self, *, limit: int = 50, cursor: str | None = None) -> Page[AgentRead]:
        """Read a page of the agents, in order of their ids; at most 200."""
        return await self._exchange.call(Page[AgentRead], "GET", "/v1/agents", query=_paging(limit, cursor))

    async def put_binding(self, binding_id: str, binding: BindingRequest) -> BindingRead:
        """Create or replace a binding."""
        body = binding.model_dump(mode="json", exclude_none=True)
        return await self._exchange.call(BindingRead, "PUT", f"/v1/bindings/{segment(binding_id)}", body=body)

    async def list_bindings(self, *, limit: int = 50, cursor: str | None = None) -> Page[BindingRead]:
        """Read a page of the bindings, in order of their ids; at most 200."""
        return await self._exchange.call(Page[BindingRead], "GET", "/v1/bindings", query=_paging(limit, cursor))

    async def transcript(
        self,
        conversation_id: str,
        *,
        bot_id: str | None = None,
        thread_id: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[TranscriptItemRead]:
        """Read a page of a conversation, newest first; at most 200. A bot or thread left out means any."""
        narrowed = {"bot_id": bot_id, "thread_id": thread_id}
        return await self._exchange.call(
            Page[TranscriptItemRead],
            "GET",
            f"/v1/conversations/{segment(conversation_id)}/transcript",
            query=_paging(limit, cursor, {name: value for name, value in narrowed.items() if value is not None}),
        )


def _run_path(run_id: str) -> str:
    return f"/v1/runs/{segment(run_id)}"


def _key(given: str | None) -> str:
    """Return the key of a call, which all its tries share."""
    return given or uuid.uuid4().hex


def _paging(limit: int, cursor: str | None, filters: Mapping[str, str] | None = None) -> dict[str, str]:
    cursors = {} if cursor is None else {"cursor": cursor}
    return {"limit": str(limit), **cursors, **(filters or {})}
