"""Starting the workflow of an accepted run."""

from temporalio.client import Client
from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from activities.messages import RunOrder
from runhost.protocol import AgentRun, workflow_id_for
from workflows import search_attributes
from workflows.run import AgentRunWorkflow


async def start_run(client: Client, run: AgentRun, *, task_queue: str) -> None:
    """Start a run's workflow; does nothing where it has been started before.

    Raises:
        temporalio.service.RPCError: Temporal refuses or cannot be reached. The core tries for several seconds
            by itself, so bound the wait.
    """
    pairs: list[SearchAttributePair[str]] = [
        SearchAttributePair(search_attributes.STATUS, "running"),
        SearchAttributePair(search_attributes.RUNNER, run.runner_id),
        SearchAttributePair(search_attributes.WORKSPACE, run.workspace_id or ""),
        SearchAttributePair(search_attributes.AGENT, run.agent_id or ""),
    ]
    if run.conversation_id is not None:
        pairs.append(SearchAttributePair(search_attributes.CONVERSATION, run.conversation_id))
    try:
        await client.start_workflow(
            AgentRunWorkflow.run,
            RunOrder(run_id=run.run_id),
            id=workflow_id_for(run.run_id),
            task_queue=task_queue,
            # A run is started once. What comes after is Reset, which keeps the id (DESIGN 9).
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            search_attributes=TypedSearchAttributes(pairs),
            static_summary=f"Agent `{run.agent_id}` by `{run.runner_id}`",
            request_eager_start=True,
        )
    except WorkflowAlreadyStartedError:
        return
