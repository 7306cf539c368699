"""The registry of runners that workers have announced (HOST 5, D-19). It belongs to the whole host."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import RowMapping, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import AgentRunnerDescriptor
from stores.errors import RunnerUnknown
from stores.tables import runner


@dataclass(frozen=True)
class RegisteredRunner:
    """A runner and the task queue of the workers that execute it (DESIGN 2)."""

    descriptor: AgentRunnerDescriptor
    task_queue: str
    is_stale: bool
    last_seen_at: datetime


class RunnerStore:
    """What can be run, and where."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def announce(self, task_queue: str, descriptors: Sequence[AgentRunnerDescriptor]) -> None:
        """Replace what this task queue offers by ``descriptors``; the same again only moves the time."""
        if descriptors:
            statement = insert(runner).values(
                [
                    {
                        "runner_id": descriptor.id,
                        "task_queue": task_queue,
                        "descriptor": descriptor.model_dump(mode="json"),
                    }
                    for descriptor in descriptors
                ]
            )
            await self._connection.execute(
                statement.on_conflict_do_update(
                    index_elements=[runner.c.runner_id],
                    set_={
                        "task_queue": statement.excluded.task_queue,
                        "descriptor": statement.excluded.descriptor,
                        "is_stale": False,
                        "last_seen_at": func.now(),
                    },
                )
            )
        await self._connection.execute(
            delete(runner).where(
                runner.c.task_queue == task_queue,
                runner.c.runner_id.not_in([descriptor.id for descriptor in descriptors]),
            )
        )

    async def mark_stale(self, task_queue: str) -> None:
        """Keep the last good descriptors of a source whose discovery failed, and say that they are old."""
        await self._connection.execute(update(runner).where(runner.c.task_queue == task_queue).values(is_stale=True))

    async def get(self, runner_id: str) -> RegisteredRunner:
        """Return a runner.

        Raises:
            RunnerUnknown: No worker announced it, or the id has no valid form (H-R6).
        """
        rows = await self._connection.execute(select(runner).where(runner.c.runner_id == runner_id))
        row = rows.mappings().one_or_none()
        if row is None:
            raise RunnerUnknown(f"No worker offers the runner {runner_id!r}; see `runhost runners`.")
        return _read(row)

    async def list(self) -> list[RegisteredRunner]:
        """Return all runners in order of their ids."""
        rows = await self._connection.execute(select(runner).order_by(runner.c.runner_id))
        return [_read(row) for row in rows.mappings()]


def _read(row: RowMapping) -> RegisteredRunner:
    return RegisteredRunner(
        descriptor=AgentRunnerDescriptor.model_validate(row["descriptor"]),
        task_queue=row["task_queue"],
        is_stale=row["is_stale"],
        last_seen_at=row["last_seen_at"],
    )
