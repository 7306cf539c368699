"""Telling the readers of a run at once of a ledger row that a request has written."""

from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from stores.availability import is_unavailable
from stores.notifications import LEDGER_CHANNEL, notify

_log = structlog.get_logger(__name__)


async def tell_readers(engine: AsyncEngine, run_id: UUID, sequence: int) -> None:
    """Notify whoever follows the run; where that fails, they find the row within a second."""
    try:
        await notify(engine, LEDGER_CHANNEL, f"{run_id}:{sequence}")
    except Exception as error:
        if not is_unavailable(error):
            raise
        _log.warning("ledger.announce.failed", run_id=str(run_id), error=type(error).__name__)
