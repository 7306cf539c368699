"""Plays scripts."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from runhost.protocol import MAX_RESULT_BYTES, OUTPUT_REQUIRED_EVENT_TYPES, AgentRunContext, RunFailureCode
from runhost.sdk import AgentRunner, results
from runners.official.scripted.script import (
    DEFAULT_SCRIPT,
    ENDS,
    ArtifactStep,
    CompletedStep,
    Step,
    UnplayableScript,
    read_script,
    read_timeout,
)

WORD: Final = re.compile(r"\S{1,12}\s*|\s+")
"""What is streamed at once when the input is echoed."""

MAX_ECHOED_BYTES: Final = MAX_RESULT_BYTES - 1024
"""JSON of an echoed message; with what surrounds it, it still fits one result (D-28)."""


class ScriptedCrash(Exception):
    """Raised by the step `crash`."""


class ScriptedRunner(AgentRunner):
    """Plays the script in its configuration, step by step; see `runners.official.scripted.script`."""

    # The values of `result` and `malformed` are no results, hence the wider type.
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        """Play the script; if it cannot be played, fail before its first step."""
        config = self.config_of(ctx)
        try:
            steps, timeout = read_script(config), read_timeout(config)
        except UnplayableScript as error:
            yield results.failed(ctx, error.code, str(error))
            return
        if steps is DEFAULT_SCRIPT and _is_silent(ctx):
            error = "the event carries no text to echo, and there is no script"
            yield results.failed(ctx, RunFailureCode.RUNNER_NO_OUTPUT, error)
            return
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        ended = False
        try:
            for step in steps:
                async with asyncio.timeout_at(deadline):
                    await _wait(step)
                for result in _results(ctx, step):
                    yield result
                ended = ended or step.kind in ENDS
        except TimeoutError:
            error = f"the script took longer than its timeout of {timeout:g} s"
            yield results.failed(ctx, RunFailureCode.RUNNER_TIMEOUT, error, retryable=True)
        except asyncio.CancelledError:
            if ended:
                raise
            yield results.cancelled(ctx)


async def _wait(step: Step) -> None:
    match step.kind:
        case "pause":
            await asyncio.sleep(step.value)
        case "silence":
            await asyncio.Event().wait()
        case "deaf":
            await _wait_deaf(step.value)
        case _:
            # A script without pauses can be timed out and cancelled between its steps too.
            await asyncio.sleep(0)


async def _wait_deaf(seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            continue


def _results(ctx: AgentRunContext, step: Step) -> Iterator[object]:
    """Build what a step yields; the steps that misbehave do so here."""
    value = step.value
    match step.kind:
        case "delta":
            yield results.delta(ctx, value)
        case "message":
            yield results.message(ctx, value)
        case "echo":
            yield from _echo(ctx)
        case "state":
            yield results.state(ctx, value.scope, value.key, value.value)
        case "artifact":
            yield _artifact(ctx, value)
        case "result" | "malformed":
            yield value
        case "flood":
            yield from (results.delta(ctx, f"{number} ") for number in range(1, value + 1))
        case "completed":
            yield _completed(ctx, value)
        case "failed":
            yield results.failed(ctx, value.code, value.error, retryable=value.retryable)
        case "block":
            time.sleep(value)
        case "crash":
            raise ScriptedCrash(value)


def _echo(ctx: AgentRunContext) -> Iterator[object]:
    text = ctx.input.text
    if not text:
        return
    for word in WORD.findall(text):
        yield results.delta(ctx, word)
    # Of a text that is too long for one result, the host makes the message from the deltas (D-25).
    if len(json.dumps(text)) <= MAX_ECHOED_BYTES:
        yield results.message(ctx, text)


def _is_silent(ctx: AgentRunContext) -> bool:
    """Say whether an echo of this event would show nothing where something is expected (D-24)."""
    return ctx.event.event_type in OUTPUT_REQUIRED_EVENT_TYPES and not (ctx.input.text or "").strip()


def _completed(ctx: AgentRunContext, value: str | CompletedStep) -> object:
    if isinstance(value, str):
        return results.completed(ctx, value)
    return results.completed(ctx, value.finish_reason, message=value.message, usage=value.usage)


def _artifact(ctx: AgentRunContext, value: ArtifactStep) -> object:
    return results.artifact(
        ctx,
        value.artifact_type,
        value.text.encode(),
        name=value.name,
        mime_type=value.mime_type,
        artifact_id=value.artifact_id,
    )
