"""A host that answers as it is told, without any wire, and contexts that grant what a test wants."""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

from runhost.protocol import AgentRunContext, JsonObject
from runhost.sdk import AgentRunAPIProxy
from tests.runners.contexts import run_context

EVERYTHING: dict[str, Any] = {
    "models": [{"model_id": "gpt"}, {"model_id": "ranker", "operations": ["rerank"]}],
    "tools": [{"tool_name": "clock"}, {"tool_name": "look-only", "operations": ["detail"]}],
    "knowledge_bases": [{"kb_id": "manual"}],
    "files": [{"file_id": "logo", "operations": ["config"]}],
    "storage": {"plugin_storage": True, "workspace_storage": True},
}
PULL_APIS = (
    "prompt_get",
    "history_page",
    "history_search",
    "event_get",
    "event_page",
    "artifact_metadata",
    "artifact_read",
    "state",
    "storage",
    "steering_pull",
)


def granted(
    resources: dict[str, Any] = EVERYTHING, apis: tuple[str, ...] = PULL_APIS, *, seconds_left: float | None = None
) -> AgentRunContext:
    """Return the context of a run that was granted this, everything by default."""
    fields = run_context().model_dump()
    fields["resources"] = resources
    fields["context"]["available_apis"] = dict.fromkeys(apis, True)
    fields["runtime"]["deadline_at"] = None if seconds_left is None else time.time() + seconds_left
    return AgentRunContext.model_validate(fields)


class ScriptedConnection:
    """Plays one answer per call, the last one for all that follow; an exception is raised.

    A stream plays all answers in one call. `None` never answers.

    Attributes:
        calls: What was asked, in order.
        cancelled: Calls that were given up, and streams that were closed before their end.
    """

    def __init__(self, *answers: Any) -> None:
        self.calls: list[tuple[str, JsonObject]] = []
        self.cancelled: list[str] = []
        self._answers = list(answers)

    async def call(self, method: str, params: JsonObject) -> JsonObject:
        self.calls.append((method, params))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return await self._play(method, answer)

    async def stream(self, method: str, params: JsonObject) -> AsyncGenerator[JsonObject]:
        self.calls.append((method, params))
        try:
            for answer in self._answers:
                yield await self._play(method, answer)
        except GeneratorExit:
            self.cancelled.append(method)
            raise

    async def _play(self, method: str, answer: Any) -> JsonObject:
        if isinstance(answer, Exception):
            raise answer
        try:
            while answer is None:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.append(method)
            raise
        return answer


def proxy(*answers: Any, ctx: AgentRunContext | None = None) -> tuple[AgentRunAPIProxy, ScriptedConnection]:
    """Return a proxy for a run that was granted everything, and the host that it asks."""
    connection = ScriptedConnection(*answers)
    return AgentRunAPIProxy(ctx or granted(), connection), connection
