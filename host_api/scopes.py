"""What a session narrows the statements of its calls to, and what becomes of those that came too late."""

from collections.abc import Iterator
from contextlib import contextmanager

from host_api.authentication import CredentialsRefused
from host_api.session import RunSession
from stores.errors import StaleAttempt
from stores.fence import Fence
from stores.run_scope import RunScope


def scope_of(session: RunSession) -> RunScope:
    """Return what the run may read, by its snapshot (H-A7)."""
    authorization = session.authorization
    return RunScope(
        workspace_id=session.workspace_id,
        conversation_id=authorization.conversation_id,
        thread_id=authorization.thread_id,
        bot_id=authorization.bot_id,
        run_id=session.run_id,
    )


def fence_of(session: RunSession) -> Fence:
    """Return the attempt whose write it is."""
    return Fence(session.run_id, session.attempt)


@contextmanager
def fenced() -> Iterator[None]:
    """Answer a write that its fence refused as a dead token is answered: between gate and write it died (INV-5).

    Raises:
        HostCallError: `unauthorized`.
    """
    try:
        yield
    except StaleAttempt:
        raise CredentialsRefused from None
