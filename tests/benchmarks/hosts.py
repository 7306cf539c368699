"""The host of one measure: a workspace and a task queue that no other measure uses."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from activities.journal import AttemptJournal
from runhost.protocol import AgentRun
from stores.attempts import ActivityExecution, AttemptStore, OpenAttempt
from stores.journal import JournalStore
from stores.notifications import LedgerAnnouncer
from stores.runs import RunStore
from tests.fixtures.host import WorkingHost, make_envelope

RUNNERS = Path(__file__).parent / "runners"
CLOCK = "plugin:runhost/bench/default"


@dataclass
class BenchHost(WorkingHost):
    """Runs of agent ``a1``, which a measure puts first."""

    @property
    def bare_queue(self) -> str:
        """Task queue of the bare workflows of the same measure."""
        return f"{self.task_queue}-bare"

    async def put_clock(self, **config: Any) -> None:
        """Let the agent be the runner that notes when it is started and when it is told to stop."""
        await self.put_agent(runner_id=CLOCK, **config)

    async def accept_message(self) -> AgentRun:
        """Accept a message in a conversation of its own, as `POST /v1/events` does, and return its run."""
        conversation = secrets.token_hex(8)
        accepted = await self.accept(make_envelope(workspace_id=self.workspace_id, conversation_id=conversation))
        if accepted.new_run is None:
            raise LookupError(f"The message led to no run: {accepted.disposition}.")
        return accepted.new_run

    async def start_message(self) -> str:
        """Accept a message and start its run; returns the run's id."""
        run = await self.accept_message()
        await self.start(run)
        return run.run_id

    async def open_journal(self, pool: asyncpg.Pool, announcer: LedgerAnnouncer) -> tuple[str, AttemptJournal]:
        """Accept a message, open an attempt of its run without Temporal, and return run id and journal."""
        run_id = UUID((await self.accept_message()).run_id)
        execution = ActivityExecution(secrets.token_hex(8), "1", 1, "bench")
        async with self.engine.begin() as connection:
            await RunStore(connection).freeze(run_id, authorization={}, context={}, deadline_at=None)
            opened = await AttemptStore(connection).open(run_id, execution)
        assert isinstance(opened, OpenAttempt)
        return str(run_id), AttemptJournal(self.engine, JournalStore(pool), announcer, opened)


def delta(run_id: str, number: int) -> dict[str, Any]:
    """Return a delta as a runner yields it: a word of a streamed answer."""
    chunk = {"role": "assistant", "content": f"word {number} "}
    return {"run_id": run_id, "type": "message.delta", "data": {"chunk": chunk}}


def words(run_id: str, count: int) -> Sequence[dict[str, Any]]:
    """Return so many deltas."""
    return [delta(run_id, number) for number in range(count)]
