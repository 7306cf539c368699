"""The engine and the Temporal client of a server process, made from its settings."""

import logging
import os
import socket

from sqlalchemy.ext.asyncio import AsyncEngine
from temporalio.client import Client
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig

from runhost.settings import Settings
from stores.engine import build_engine
from workflows.client import connect

# The client's core writes one WARN line for each try while Temporal is away: hundreds (TEMPORAL 13.11).
TEMPORAL_LOG_FILTER = "ERROR,temporalio_common=WARN,temporalio_sdk_core=WARN,temporalio_client=ERROR"


def engine_for(settings: Settings, process: str, *, check_connections: bool = False) -> AsyncEngine:
    """Return the engine of ``process``, a word that shows in ``pg_stat_activity``."""
    return build_engine(
        settings.database_url.get_secret_value(),
        pool_size=settings.database_pool_size,
        application_name=f"runhost {process}",
        check_connections=check_connections,
    )


async def temporal_for(settings: Settings, process: str, *, lazy: bool = False) -> Client:
    """Return the Temporal client of ``process``; with ``lazy``, one that connects with its first call.

    Raises:
        RuntimeError: Nothing answers (not raised with ``lazy``).
    """
    _log_through_python()
    api_key = settings.temporal_api_key
    return await connect(
        settings.temporal_address,
        settings.temporal_namespace,
        api_key=None if api_key is None else api_key.get_secret_value(),
        tls=settings.temporal_tls,
        identity=f"runhost-{process}@{socket.gethostname()}:{os.getpid()}",
        lazy=lazy,
    )


def _log_through_python() -> None:
    # Without its fields, which may quote what failed (INV-9).
    forwarding = LogForwardingConfig(logging.getLogger("temporalio.core"), append_log_fields_to_message=False)
    logs = LoggingConfig(TEMPORAL_LOG_FILTER, forwarding)
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=logs)), error_if_already_set=False)
