"""Postgres and Temporal from wheels: the whole stack on one machine, for development and tests (D-60).

Nothing outside this package, the command line and the test fixtures knows that these servers exist.
"""

from runhost.embedded.data_directory import DataDirectory
from runhost.embedded.errors import (
    DataDirectoryInUse,
    EmbeddedError,
    EmbeddedExtraMissing,
    PortInUse,
    StartFailed,
)
from runhost.embedded.postgres import EmbeddedPostgres
from runhost.embedded.process import ChildProcess
from runhost.embedded.temporal import EmbeddedTemporal

__all__ = [
    "ChildProcess",
    "DataDirectory",
    "DataDirectoryInUse",
    "EmbeddedError",
    "EmbeddedExtraMissing",
    "EmbeddedPostgres",
    "EmbeddedTemporal",
    "PortInUse",
    "StartFailed",
]
