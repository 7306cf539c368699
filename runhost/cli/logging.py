"""Logging, set up once per process by its entry point: structured, bridged, and without what users wrote.

Our own events are dotted names with fields. What libraries say through the standard library ends in the same
stream and form. INV-9 forbids user content in logs, so exceptions are logged by type and place only: their
texts quote values, and tracebacks quote source lines.
"""

import logging
import sys
import traceback
from collections.abc import Iterator, MutableMapping
from typing import Any, Literal, TextIO

import structlog

# They say at INFO what holds user content (addresses with query strings) or nothing new.
QUIET_LOGGERS = (
    "alembic",
    "asyncio",
    # The session of the `mcp` package.
    "client",
    "httpcore",
    "httpcore2",
    "httpx",
    "httpx2",
    "mcp",
    "sqlalchemy",
    "uvicorn.access",
)
MAX_FRAMES = 12

EventDict = MutableMapping[str, Any]


def configure_logging(level: str, log_format: Literal["console", "json"], *, stream: TextIO = sys.stderr) -> None:
    """Send everything that this process logs to ``stream``; a second call replaces the first.

    Args:
        level: ``debug``, ``info``, ``warning`` or ``error``.
        log_format: ``console`` for a person, ``json`` for one object per line.
        stream: Standard error by default; standard output belongs to the commands.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _first_line,
        _failure_without_text,
    ]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer(log_format, stream)],
            keep_exc_info=False,
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in QUIET_LOGGERS:
        logging.getLogger(name).setLevel(max(root.level, logging.WARNING))


def _renderer(log_format: str, stream: TextIO) -> structlog.typing.Processor:
    if log_format == "json":
        return structlog.processors.JSONRenderer()
    return structlog.dev.ConsoleRenderer(colors=stream.isatty())


def _first_line(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Keep the first line of a message; asyncio, for one, puts the repr of an exception on the next ones."""
    event["event"] = str(event["event"]).split("\n", 1)[0]
    return event


def _failure_without_text(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Replace an exception by its chain of types and the places it passed through, innermost last."""
    error = _exception_of(event.pop("exc_info", None))
    event.pop("stack_info", None)
    if error is not None:
        event["error"] = " <- ".join(type(link).__qualname__ for link in _chain(error))
        frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
        event["error_at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return event


def _exception_of(exc_info: object) -> BaseException | None:
    """Read the forms that ``exc_info`` may have: an exception, the triple, or a true value for the current one."""
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        return exc_info[1]
    return sys.exc_info()[1] if exc_info else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__
