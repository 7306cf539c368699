"""The base class of runners."""

from collections.abc import AsyncIterator

import pytest

from runhost.protocol import AgentRunContext, AgentRunnerManifest, AgentRunResult, DynamicFormItemSchema
from runhost.sdk import AgentRunner, results
from tests.runners.contexts import run_context


class Greeter(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        yield results.message(ctx, f"Hello {self.config_of(ctx)['name']}")


MANIFEST = AgentRunnerManifest(
    id="plugin:acme/greeter/default",
    name="default",
    label={"en_US": "Greeter"},
    config_schema=[
        DynamicFormItemSchema(name="name", type="string", default="you"),
        DynamicFormItemSchema(name="size", type="integer"),
    ],
)


def test_runner_without_run_cannot_be_made() -> None:
    class Nothing(AgentRunner):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Nothing()  # pyright: ignore[reportAbstractUsage]


def test_config_falls_back_to_the_form() -> None:
    runner = Greeter()
    runner.manifest = MANIFEST
    assert runner.config_of(run_context(config={"size": 3})) == {"name": "you", "size": 3}
    assert runner.config_of(run_context(config={"name": "Ada"})) == {"name": "Ada"}


async def test_runner_can_be_tested_without_a_host() -> None:
    (result,) = [result async for result in Greeter().run(run_context(config={"name": "Ada"}))]
    assert result.data["message"] == {"role": "assistant", "content": "Hello Ada"}
