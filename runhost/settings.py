"""The settings of all processes: environment variables with the prefix ``RUNHOST_``.

Read by the command line only, which hands their values down. Nothing secret has a default that works.
"""

import os
import shlex
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

DRIVER = "postgresql+asyncpg"
MAX_PORT = 65_535


def _with_driver(url: SecretStr) -> SecretStr:
    """Accept the schemes that other tools use for the same database."""
    scheme, separator, rest = url.get_secret_value().partition("://")
    if not separator or scheme not in {DRIVER, "postgresql", "postgres"}:
        # The value may hold a password, so it is not quoted.
        raise ValueError(f"must begin with {DRIVER}://")
    return SecretStr(f"{DRIVER}://{rest}")


def _plain_seconds(value: object) -> object:
    """Accept a plain number of seconds beside ISO 8601 (``PT15S``) and ``00:00:15``."""
    if isinstance(value, str):
        try:
            return timedelta(seconds=float(value))
        except ValueError:
            return value
    return value


def _path_list(value: object) -> object:
    """Split a list of folders as PATH is split."""
    return [part for part in value.split(os.pathsep) if part] if isinstance(value, str) else value


def _command_list(value: object) -> object:
    """Split command lines at semicolons."""
    return [line.strip() for line in value.split(";") if line.strip()] if isinstance(value, str) else value


def _readable_command(line: str) -> str:
    """Refuse a line that no shell could split."""
    shlex.split(line)
    return line


DatabaseUrl = Annotated[SecretStr, AfterValidator(_with_driver)]
Duration = Annotated[timedelta, BeforeValidator(_plain_seconds), Field(ge=timedelta(0))]
PositiveDuration = Annotated[timedelta, BeforeValidator(_plain_seconds), Field(gt=timedelta(0))]
Paths = Annotated[list[Path], NoDecode, BeforeValidator(_path_list)]
Commands = Annotated[list[Annotated[str, AfterValidator(_readable_command)]], NoDecode, BeforeValidator(_command_list)]
Port = Annotated[int, Field(ge=0, le=MAX_PORT)]


class Settings(BaseSettings):
    """Where Postgres and Temporal are, and how this process behaves.

    Each field is the environment variable ``RUNHOST_<FIELD>`` in capitals. Durations are seconds (``15``)
    or ISO 8601 (``PT15S``). The only field without a default is the database.
    """

    model_config = SettingsConfigDict(env_prefix="RUNHOST_", frozen=True, hide_input_in_errors=True)

    database_url: DatabaseUrl = Field(
        description="SQLAlchemy URL of the Postgres database with the facts: postgresql+asyncpg://user:password@host/name."
    )
    database_pool_size: int = Field(
        default=20, ge=1, description="Connections this process keeps at most; count all processes against the server."
    )

    temporal_address: str = Field(
        default="127.0.0.1:7233", min_length=1, description="host:port of Temporal's frontend."
    )
    temporal_namespace: str = Field(default="default", min_length=1, description="Temporal namespace of all runs.")
    temporal_api_key: SecretStr | None = Field(default=None, description="API key for Temporal, where it asks for one.")
    temporal_tls: bool = Field(default=False, description="Whether to speak TLS with Temporal.")
    task_queue: str = Field(
        default="runhost", min_length=1, description="Task queue of the workflows and of the runners in process."
    )

    api_host: str = Field(default="127.0.0.1", min_length=1, description="Address the API listens on.")
    api_port: Port = Field(default=8080, description="Port the API listens on.")

    runner_paths: Paths = Field(
        default_factory=list, description="Folders with runners beside the installed ones, separated as in PATH."
    )
    file_root: Path | None = Field(
        default=None, description="Folder that file artifacts lie in; without it no run reads a file of this machine."
    )
    mcp_stdio_commands: Commands = Field(
        default_factory=list,
        description="Programs that workspaces may have started as tool servers: beginnings of command lines,"
        " separated by semicolons, such as 'uvx mcp-server-time; npx'. They run with the rights of this process.",
    )
    host_calls_per_second: float = Field(
        default=50.0,
        gt=0,
        le=1_000_000,
        description="Calls of the host that one run may make per second, on average.",
    )
    host_calls_burst: int = Field(default=200, ge=1, description="Calls of the host that one run may make at once.")
    host_request_bytes: int = Field(
        default=1024 * 1024,
        ge=1024,
        le=4 * 1024 * 1024,
        description="Largest parameters of one call, as JSON; calls that carry values take more.",
    )
    host_response_bytes: int = Field(
        default=10 * 1024 * 1024,
        ge=64 * 1024,
        le=100 * 1024 * 1024,
        description="Largest answer of one call: JSON, or the bytes inside it before base64.",
    )
    heartbeat_interval: PositiveDuration = Field(
        default=timedelta(seconds=5), description="How often a running attempt proves that its worker lives."
    )
    graceful_shutdown: Duration = Field(
        default=timedelta(seconds=15),
        description="How long a stopped worker lets its runs go on, before it hands them over.",
    )
    max_cached_workflows: int = Field(
        default=500, ge=0, description="Workflows a worker keeps in memory, about 85 KB each."
    )
    max_open_runs: int = Field(
        default=1_000, ge=1, description="Runners at work in one worker at once; more wait in Temporal."
    )

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe level that is logged."
    )
    log_format: Literal["console", "json"] = Field(
        default="json", description="For a person at a terminal, or one JSON object per line."
    )


class ClientSettings(BaseSettings):
    """Which host the commands for people talk to; options of a command come before the environment."""

    model_config = SettingsConfigDict(env_prefix="RUNHOST_", frozen=True, hide_input_in_errors=True)

    api_url: str = Field(default="http://127.0.0.1:8080", description="Address of the API, without /v1.")
    key: SecretStr | None = Field(default=None, description="Bearer key, as `runhost keys create` makes it.")


class RunnerSettings(BaseSettings):
    """Where runners are, for commands that need neither database nor Temporal."""

    model_config = Settings.model_config

    runner_paths: Paths = Field(default_factory=list, description=Settings.model_fields["runner_paths"].description)
