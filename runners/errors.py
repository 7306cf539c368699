"""What can go wrong on the way to a runner or inside one.

* RunnerError
  * RunnerNotFound       no such runner here, or no runner id at all
  * RunnerNotAuthorized  the runner exists, outside the plugins that may be used
  * InvalidRunner        its code is not what its manifest promises
  * RunnerCrashed        it raised
  * RunnerBlocked        its event loop stopped answering
  * ProtocolBroken       a program wrote what is no message
* ManifestError          a manifest that cannot be read; names file and field
* DiscoveryFailed        the search as a whole failed, not one runner of it
"""

from pathlib import Path
from typing import ClassVar

from runhost.protocol import RunFailureCode
from runhost.protocol.errors import excerpt

MAX_MESSAGE_CHARACTERS = 2_000
SHOWN_LINE_BYTES = 200


class RunnerError(Exception):
    """Base of what a run can end with on the runner's side.

    `code` is the code of the `run.failed` that the host writes for it (PROTOCOL 10).
    """

    code: ClassVar[str] = RunFailureCode.RUNNER_ERROR


class RunnerNotFound(RunnerError):
    """No runner of this id is registered, or the id is not a runner id (HOST 5, H-R6)."""

    code = RunFailureCode.RUNNER_NOT_FOUND

    def __init__(self, runner_id: str) -> None:
        self.runner_id = runner_id
        super().__init__(f"no runner {runner_id!r} is registered; `runhost runners` lists those that are")


class RunnerNotAuthorized(RunnerError):
    """The runner is registered, its plugin is not among those that the caller may use (HOST 5, H-R6)."""

    code = RunFailureCode.RUNNER_NOT_AUTHORIZED

    def __init__(self, runner_id: str, plugin_id: str) -> None:
        self.runner_id = runner_id
        self.plugin_id = plugin_id
        super().__init__(f"runner {runner_id!r} belongs to plugin {plugin_id!r}, which is not allowed here")


class InvalidRunner(RunnerError):
    """The code behind a manifest is missing, is no `AgentRunner`, or its `run` is no async generator."""

    def __init__(self, runner_id: str, reason: str) -> None:
        self.runner_id = runner_id
        super().__init__(f"runner {runner_id!r}: {reason}")


class RunnerCrashed(RunnerError):
    """The runner raised: on import, in its constructor or while it ran.

    `message` is the exception's text, at most 2,000 characters. It may carry what a user wrote, so it belongs
    in the ledger and neither in logs nor in Temporal (INV-9); `type_name` and `where` are safe there.
    """

    def __init__(self, type_name: str, message: str, where: str = "") -> None:
        self.type_name = type_name
        self.message = message[:MAX_MESSAGE_CHARACTERS]
        self.where = where
        super().__init__(f"{type_name}: {self.message}" + (f" (at {where})" if where else ""))


class RunnerBlocked(RunnerError):
    """The runner held its event loop without a pause; `frame` says in which line."""

    code = RunFailureCode.RUNNER_BLOCKED

    def __init__(self, frame: str, seconds: float) -> None:
        self.frame = frame
        super().__init__(
            f"the runner blocked its event loop for {seconds:g} s at {frame}; "
            "await there, or move the call to asyncio.to_thread"
        )


class ProtocolBroken(RunnerError):
    """A program does not speak as docs/subprocess-runners.md says; the text shows where, in at most 700 characters.

    Like the text of a crash it may carry what a user wrote; `reason` alone does not.
    """

    code = RunFailureCode.RUNNER_PROTOCOL

    def __init__(self, reason: str, line: bytes = b"") -> None:
        self.reason = reason
        shown = excerpt(line[:SHOWN_LINE_BYTES].decode("utf-8", "replace"))
        super().__init__(f"the program wrote {reason}" + (f": {shown}" if line else ""))


class ManifestError(Exception):
    """A component manifest that cannot be used; the text names the file, the field and the reason."""

    def __init__(self, file: Path, field: str, reason: str) -> None:
        self.file = file
        self.field = field
        self.reason = reason
        super().__init__(f"{file}: {field}: {reason}" if field else f"{file}: {reason}")


class DiscoveryFailed(Exception):
    """Runners could not be searched at all; what was found before stays in use (D-19)."""
