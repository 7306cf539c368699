"""How much Temporal keeps of a plain run."""

from typing import Any

from temporalio.client import WorkflowHandle

from tests.benchmarks.bare import bare_worker, start_bare
from tests.benchmarks.report import Budget, Line
from tests.benchmarks.stage import Stage
from tests.benchmarks.throughput import ANSWER

MAX_EVENTS = 16
MAX_BYTES = 6 * 1024


async def measure(stage: Stage) -> list[Line]:
    """Compare a run of one message with a bare workflow, as the server counts them."""
    host = stage.host("history")
    await host.put_agent(script=ANSWER)
    async with host.worker(), bare_worker(stage.client, host.bare_queue):
        run = await host.start(await host.accept_message())
        bare = await start_bare(stage.client, host.bare_queue)
        events, size = await _history_of(run)
        bare_events, bare_size = await _history_of(bare)
    settings = {"results": len(ANSWER)}
    return [
        Line("history_events", events, "events", bare_events, Budget(value_at_most=MAX_EVENTS), settings),
        Line("history_bytes", size, "bytes", bare_size, Budget(value_at_most=MAX_BYTES), settings),
    ]


async def _history_of(handle: WorkflowHandle[Any, Any]) -> tuple[int, int]:
    """Return events and bytes of the history of a workflow, once it has ended."""
    await handle.result()
    info = (await handle.describe()).raw_description.workflow_execution_info
    return info.history_length, info.history_size_bytes
