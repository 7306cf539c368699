"""Contexts and registries for tests of runners, with defaults for everything."""

from pathlib import Path
from uuid import uuid4

from runhost.protocol import (
    AgentEventContext,
    AgentInput,
    AgentResources,
    AgentRunContext,
    AgentRunnerDiscovery,
    AgentRunnerManifest,
    AgentRunState,
    AgentRuntimeContext,
    AgentTrigger,
    ContextAccess,
    ContextAPICapabilities,
    DeliveryContext,
    InlineContextPolicy,
    JsonObject,
)
from runhost.sdk import AgentRunner
from runners.code import RunnerCode
from runners.errors import RunnerError
from runners.manifest import DiscoveredRunner
from runners.registry import RunnerRegistry
from runners.transport import RunnerSession


def run_context(text: str | None = "hello", config: JsonObject | None = None) -> AgentRunContext:
    run_id = str(uuid4())
    return AgentRunContext(
        run_id=run_id,
        trigger=AgentTrigger(type="message.received", source="api"),
        event=AgentEventContext(event_id="event-1", event_type="message.received", source="api"),
        input=AgentInput(text=text),
        delivery=DeliveryContext(surface="api", supports_streaming=True),
        resources=AgentResources(),
        context=ContextAccess(
            inline_policy=InlineContextPolicy(mode="current_event"), available_apis=ContextAPICapabilities()
        ),
        state=AgentRunState(),
        runtime=AgentRuntimeContext(trace_id=run_id),
        config=config or {},
    )


def runner_id_of(attr: str) -> str:
    return f"plugin:test/runners/{attr}"


def discovered(attr: str, code: RunnerCode) -> DiscoveredRunner:
    manifest = AgentRunnerManifest(id=runner_id_of(attr), name=attr, label={"en_US": attr})
    discovery = AgentRunnerDiscovery(plugin_author="test", plugin_name="runners", runner_name=attr, manifest=manifest)
    return DiscoveredRunner(code.folder / "runner.yaml", discovery, code)


def registry_of(*runners: type[AgentRunner]) -> RunnerRegistry:
    """A registry of classes that stand in importable test modules."""
    found = [discovered(runner.__name__, _code_of(runner)) for runner in runners]
    return RunnerRegistry(lambda: found)


async def read_until_error(session: RunnerSession) -> tuple[list[object], RunnerError]:
    """Read a session that must end with an error; return what came before it, and the error."""
    seen: list[object] = []
    try:
        async for result in session.results():
            seen.append(result)  # noqa: PERF401 - what came before the error counts too
    except RunnerError as error:
        return seen, error
    raise AssertionError(f"ended without an error after {seen!r:.500}")


def _code_of(runner: type[AgentRunner]) -> RunnerCode:
    package, _, module = runner.__module__.rpartition(".")
    return RunnerCode(Path(__file__).parent, module, runner.__name__, package)
