"""From an event to a run, in one transaction: event log, run, transcript, input artifacts (INV-1, INV-2)."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import AgentEventEnvelope, AgentRun, ArtifactRef, JsonObject
from stores.agents import AgentStore
from stores.artifacts import ArtifactStore
from stores.bindings import BindingStore, NoRoute, Route
from stores.errors import EventConflict
from stores.events import EventStore, RecordedEvent
from stores.identifiers import new_uuid
from stores.jsonb import digest
from stores.redaction import inline_contents, linked_contents
from stores.runs import RunStore
from stores.transcripts import TranscriptStore

MESSAGE_RECEIVED = "message.received"


@dataclass(frozen=True)
class Accepted:
    """What became of an event.

    Attributes:
        disposition: ``run_started``, ``ignored`` (nothing is bound) or ``binding_ambiguous``.
        is_duplicate: The event was here before with the same content; this is its first outcome (D-21).
        outcome: What the caller is told besides: ``binding_ids`` of an ambiguous event.
        new_run: The run that this very call has written; once that is committed, its workflow is to be started.
    """

    event_id: str
    disposition: str
    run_id: UUID | None
    is_duplicate: bool
    outcome: JsonObject
    new_run: AgentRun | None = None


class Ingest:
    """Accepts events for one workspace."""

    def __init__(self, connection: AsyncConnection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id
        self._events = EventStore(connection, workspace_id)

    async def accept_event(self, envelope: AgentEventEnvelope) -> Accepted:
        """Log an event and create the run that its binding asks for.

        Safe to repeat: the same event again writes nothing and answers with the first outcome.

        Raises:
            EventConflict: The event id is known with other content.
        """
        content_hash = digest(envelope.model_dump(mode="json"))
        known = await self._events.find(envelope.event_id)
        if known is not None:
            return _first_outcome(known, content_hash)
        route = await BindingStore(self._connection, self._workspace_id).resolve(envelope)
        return await self._record(envelope, content_hash, route, {})

    async def accept_run(self, envelope: AgentEventEnvelope, agent_id: str, metadata: JsonObject) -> Accepted:
        """Log the event of an explicit run and create the run of this agent (D-40).

        Raises:
            AgentNotFound: There is no such agent in the workspace.
            EventConflict: The event id is known with other content.
        """
        agent = await AgentStore(self._connection, self._workspace_id).get(agent_id)
        route = Route(agent.agent_id, agent.version, agent.config, None)
        content_hash = digest(envelope.model_dump(mode="json"))
        return await self._record(envelope, content_hash, route, metadata)

    async def _record(
        self, envelope: AgentEventEnvelope, content_hash: bytes, route: Route | NoRoute, metadata: JsonObject
    ) -> Accepted:
        event = _outcome_of(envelope, content_hash, route)
        runner_id = route.config.runner_id if isinstance(route, Route) else None
        if not await self._events.record(envelope, event, runner_id=runner_id):
            known = await self._events.find(envelope.event_id)
            if known is None:
                # Taken by a row that the host wrote: such ids are the host's own.
                raise EventConflict(f"Event id {envelope.event_id!r} is reserved; send another.")
            return _first_outcome(known, content_hash)
        new_run = None
        if isinstance(route, Route) and event.run_id is not None:
            new_run = await self._create_run(event.run_id, envelope, route, metadata)
        return Accepted(
            event.event_id,
            event.disposition,
            event.run_id,
            is_duplicate=False,
            outcome=event.outcome,
            new_run=new_run,
        )

    async def _create_run(
        self, run_id: UUID, envelope: AgentEventEnvelope, route: Route, metadata: JsonObject
    ) -> AgentRun:
        runner_id = route.config.runner_id
        run = await RunStore(self._connection).create(run_id, self._workspace_id, envelope, route, metadata)
        artifacts = ArtifactStore(self._connection, self._workspace_id)
        kept: list[ArtifactRef] = [
            await artifacts.add_input(envelope, inline, run_id=run_id, runner_id=runner_id)
            for inline in inline_contents(envelope.input)
        ]
        links = linked_contents(envelope.input)
        kept += await artifacts.add_links(envelope, links, run_id=run_id, runner_id=runner_id)
        if envelope.event_type == MESSAGE_RECEIVED and envelope.conversation_id is not None:
            await TranscriptStore(self._connection, self._workspace_id).add_user_item(
                envelope, run_id=run_id, runner_id=runner_id, artifact_refs=[*envelope.input.attachments, *kept]
            )
        return run


def _outcome_of(envelope: AgentEventEnvelope, content_hash: bytes, route: Route | NoRoute) -> RecordedEvent:
    if isinstance(route, Route):
        return RecordedEvent(envelope.event_id, content_hash, "run_started", {}, new_uuid())
    if route.binding_ids:
        outcome: JsonObject = {"binding_ids": list(route.binding_ids)}
        return RecordedEvent(envelope.event_id, content_hash, "binding_ambiguous", outcome, None)
    return RecordedEvent(envelope.event_id, content_hash, "ignored", {}, None)


def _first_outcome(known: RecordedEvent, content_hash: bytes) -> Accepted:
    if known.content_hash != content_hash:
        raise EventConflict(
            f"Event {known.event_id!r} was accepted before with other content; send changes under a new event id."
        )
    return Accepted(known.event_id, known.disposition, known.run_id, is_duplicate=True, outcome=known.outcome)
