"""Where activities meet Temporal: which run an order is for, and what leaves as an error.

Temporal keeps every error with its message and its stack for as long as it keeps the history, so nothing
leaves as it was raised: a known refusal goes out with our own words, a database that is away as a retryable
error, and anything else as a bug, named by its type alone (INV-9).
"""

import asyncio
import functools
import traceback
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar
from uuid import UUID

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.messages import RunOrder
from runhost.protocol import workflow_id_for
from stores.availability import is_unavailable
from stores.errors import StoreError

_P = ParamSpec("_P")
_T = TypeVar("_T")

_log = structlog.get_logger(__name__)


def run_id_of(order: RunOrder) -> UUID:
    """Return the run that this activity works for.

    The workflow id in the start form of the Temporal UI can be edited, and two workflows for one run would
    fight for ever: only `run-<run_id>` may work for a run.

    Raises:
        ApplicationError: Of type ``WrongWorkflow``.
    """
    workflow_id = activity.info().workflow_id
    try:
        run_id = UUID(order.run_id)
    except ValueError:
        raise refusal("WrongWorkflow", "The order names no run.") from None
    if workflow_id != workflow_id_for(str(run_id)):
        raise refusal(
            "WrongWorkflow",
            f"Only workflow {workflow_id_for(str(run_id))!r} may work for this run; reset that one instead.",
        )
    return run_id


def refusal(type_: str, message: str) -> ApplicationError:
    """Return an error that Temporal does not retry. ``message`` must hold nothing that a user wrote."""
    return ApplicationError(message, type=type_, non_retryable=True)


def guarded(method: Callable[_P, Awaitable[_T]]) -> Callable[_P, Awaitable[_T]]:
    """Let no error of an activity method out as it was raised."""

    @functools.wraps(method)
    async def run(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return await method(*args, **kwargs)
        except ApplicationError:
            raise
        except StoreError as error:
            raise refusal(type(error).__name__, f"The store refused: {error.code}.") from None
        except Exception as error:  # noqa: BLE001 - this is the boundary: nothing leaves as it was raised
            if is_unavailable(error):
                raise ApplicationError("The database cannot be reached.", type="DatabaseUnavailable") from None
            _log.error(
                "activity.failed",
                activity=activity.info().activity_type,
                workflow_id=activity.info().workflow_id,
                error=type(error).__name__,
                # The frames without the message, which may quote what a user wrote.
                frames=traceback.format_tb(error.__traceback__),
            )
            raise refusal("HostError", f"A bug in the host: {type(error).__name__}.") from None

    return run


def uninterrupted(method: Callable[_P, Awaitable[_T]]) -> Callable[_P, Awaitable[_T]]:
    """Let a short database activity finish before its cancellation is seen.

    A cancelled query leaves it open whether its transaction was committed (TEMPORAL 15, pitfall 5).
    """

    @functools.wraps(method)
    async def run(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        task = asyncio.ensure_future(method(*args, **kwargs))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise

    return run
