import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from runhost.cli.logging import QUIET_LOGGERS, configure_logging

CANARY = "canary-7f3a"


class Output(io.StringIO):
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]


@pytest.fixture
def output() -> Iterator[Output]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    levels = {name: logging.getLogger(name).level for name in QUIET_LOGGERS}
    stream = Output()
    configure_logging("info", "json", stream=stream)
    yield stream
    root.handlers = handlers
    root.setLevel(level)
    for name, quiet_level in levels.items():
        logging.getLogger(name).setLevel(quiet_level)
    structlog.reset_defaults()


def fail() -> None:
    try:
        int(CANARY)
    except ValueError as error:
        raise RuntimeError(CANARY) from error


def test_event_has_name_level_time_and_fields(output: Output) -> None:
    structlog.get_logger("worker").info("run.started", run_id="r1")

    [line] = output.lines()
    assert (line["event"], line["level"], line["logger"], line["run_id"]) == ("run.started", "info", "worker", "r1")
    assert line["timestamp"].endswith("Z")


def test_exception_is_logged_by_type_and_place_only(output: Output) -> None:
    try:
        fail()
    except RuntimeError:
        structlog.get_logger("worker").exception("run.failed", run_id="r1")
        logging.getLogger("library").exception("Task exception was never retrieved\nfuture: %s", CANARY)

    ours, theirs = output.lines()
    assert ours["error"] == theirs["error"] == "RuntimeError <- ValueError"
    assert ours["error_at"][-1].endswith(" fail")
    assert theirs["event"] == "Task exception was never retrieved"
    assert CANARY not in output.getvalue()


def test_libraries_speak_through_the_same_stream(output: Output) -> None:
    logging.getLogger("library").warning("used %s of %s", 3, 4)

    [line] = output.lines()
    assert (line["event"], line["level"], line["logger"]) == ("used 3 of 4", "warning", "library")


def test_request_addresses_are_not_logged(output: Output) -> None:
    logging.getLogger("httpx").info("HTTP Request: GET http://h/search?q=%s", CANARY)
    logging.getLogger("uvicorn.access").info("GET /search?q=%s", CANARY)

    assert output.lines() == []


def test_level_hides_what_is_less_severe(output: Output) -> None:
    structlog.get_logger("worker").debug("run.polled")

    assert output.lines() == []


def test_console_form_is_for_people(output: Output) -> None:
    configure_logging("info", "console", stream=output)

    structlog.get_logger("worker").info("run.started", run_id="r1")

    assert "run.started" in output.getvalue()
    assert "run_id=r1" in output.getvalue()
