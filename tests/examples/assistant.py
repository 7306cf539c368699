"""The example assistant in a whole host: in the worker, and as a process of its own; and what its models do."""

import json
import shutil
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from runhost.client import DocumentUpload, KnowledgeBaseRequest, ModelRequest, RunhostClient, ToolServerRequest
from runhost.client import RunRequest as Order
from runhost.protocol import AgentConfig, AgentInput, AgentRun, AgentRunEvent, DeliveryContext
from tests.eventually import eventually
from tests.fixtures.openai_stub import Behaviour, OpenAIStub, Reply, StubRequest, chunk
from tests.providers import tool_server

if TYPE_CHECKING:
    from temporalio.client import Client

    from stores.accesses import AccessRow
    from tests.api.conftest import Host

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "assistant"
IN_PROCESS, SEPARATE = "plugin:examples/assistant/default", "plugin:examples/assistant-apart/default"
TOOL_SERVER = "desk"
ECHO = f"{TOOL_SERVER}__echo"
TOOL_PROGRAM = (sys.executable, tool_server.__file__)


def copy_as_program(folder: Path) -> Path:
    """Copy the example as the guide says: one line more, and another name beside the original."""
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    manifest = yaml.safe_load((folder / "runner.yaml").read_text(encoding="utf-8"))
    manifest["metadata"]["plugin"] = "assistant-apart"
    manifest["execution"]["process"] = "separate"
    (folder / "runner.yaml").write_text(yaml.safe_dump(manifest, allow_unicode=True), encoding="utf-8")
    return folder


def processes_in(folder: Path) -> dict[int, str]:
    """Return the processes that work in a folder, each with its command line; one that is to be reaped is none."""
    found: dict[int, str] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder:
                found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return found


@dataclass
class AssistantHost:
    """An API behind a server, a worker with both forms of the assistant, and a tool server."""

    api: "Host"
    client: RunhostClient
    program_folder: Path
    tool_folder: Path

    async def accesses(self, run_id: str) -> "list[AccessRow]":
        """Read what a run called, in order."""
        from stores.accesses import AccessStore

        async with self.api.engine.connect() as connection:
            rows = await AccessStore(connection, self.api.workspace).list_of_run(uuid.UUID(run_id), limit=100)
        return rows[::-1]

    async def context(self, run_id: str) -> dict[str, Any]:
        """Read what the runner of a run was given."""
        from stores.runs import RunStore

        async with self.api.engine.connect() as connection:
            context = (await RunStore(connection).load(uuid.UUID(run_id))).context
        assert context is not None
        return context

    def tool_calls(self) -> list[str]:
        """Return the tools that the tool server was asked to call, of all tests."""
        calls = self.tool_folder / "calls"
        return calls.read_text().split() if calls.exists() else []


@asynccontextmanager
async def assistant_host(
    stack: AsyncExitStack, database_url: str, temporal: "Client", folder: Path
) -> AsyncIterator[AssistantHost]:
    """Start everything inside a block."""
    from providers.mcp import McpToolProvider, StdioPolicy
    from runhost.cli.running_worker import WorkerOptions, running_worker
    from tests.api.conftest import assemble, serve

    program_folder, tool_folder = copy_as_program(folder / "assistant"), folder / "tools"
    tool_folder.mkdir()
    tools = await stack.enter_async_context(McpToolProvider(StdioPolicy((TOOL_PROGRAM,))))
    api = await serve(assemble(stack, database_url, temporal, task_queue=f"test-{uuid.uuid4().hex}", tools=tools))
    options = WorkerOptions(
        task_queue=api.dependencies.task_queue,
        runner_paths=(FOLDER, program_folder),
        mcp_stdio_commands=(" ".join(TOOL_PROGRAM),),
        graceful_shutdown=timedelta(0),
    )
    await stack.enter_async_context(running_worker(temporal, api.engine, database_url, options))
    client = await stack.enter_async_context(RunhostClient(f"http://127.0.0.1:{api.port}", await api.key()))
    server = ToolServerRequest(transport="stdio", command=[*TOOL_PROGRAM, str(tool_folder)])
    await client.put_tool_server(TOOL_SERVER, server)
    await client.refresh_tool_server(TOOL_SERVER)
    yield AssistantHost(api, client, program_folder, tool_folder)


@dataclass
class Assistant:
    """An agent of the example in one of its forms, with a conversation and a model of its own."""

    host: AssistantHost
    runner_id: str
    stub: OpenAIStub
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def client(self) -> RunhostClient:
        return self.host.client

    @property
    def conversation_id(self) -> str:
        return f"conversation-{self.name}"

    async def put(
        self, *, models: Sequence[str] = ("model",), config: dict[str, Any] | None = None, **policies: Any
    ) -> None:
        """Register the models, which the stub plays under these names, and make the agent."""
        for model in models:
            request = ModelRequest(base_url=self.stub.base_url, model_name=model, timeout_seconds=20)
            await self.client.put_model(f"{model}-{self.name}", request)
        primary, *fallbacks = [f"{model}-{self.name}" for model in models]
        chosen = {"model": {"primary": primary, "fallbacks": fallbacks}, **(config or {})}
        agent = {"runner_id": self.runner_id, "runner_config": chosen, **policies}
        await self.client.put_agent(self.name, AgentConfig.model_validate(agent))

    async def put_base(self, text: str) -> str:
        """Make a knowledge base of one document."""
        kb_id = f"base-{self.name}"
        await self.client.put_knowledge_base(kb_id, KnowledgeBaseRequest())
        await self.client.put_document(kb_id, "document", DocumentUpload(content=text.encode(), mime_type="text/plain"))
        return kb_id

    async def start(self, text: str | None = None, *, streaming: bool = True, **more: Any) -> AgentRun:
        """Say something to the agent; returns the run as it was created."""
        order = Order(
            agent_id=self.name,
            event_type="message.received",
            conversation_id=self.conversation_id,
            input=AgentInput(text=text, **more),
            delivery=DeliveryContext(surface="test", supports_streaming=streaming),
        )
        return await self.client.create_run(order)

    async def say(self, text: str | None = None, *, streaming: bool = True, **more: Any) -> AgentRun:
        """Say something and wait for the end."""
        return await self.ended((await self.start(text, streaming=streaming, **more)).run_id)

    async def ended(self, run_id: str) -> AgentRun:
        """Wait for the end of a run."""
        async for _ in self.client.follow_run(run_id):
            pass
        return await self.client.get_run(run_id)

    async def ledger(self, run_id: str, *types: str) -> list[AgentRunEvent]:
        """Read the ledger, or the rows of it that have these types."""
        rows = (await self.client.run_events(run_id, limit=200)).items
        return [row for row in rows if not types or row.type in types]

    async def deltas(self, run_id: str) -> list[str]:
        """Read what was streamed so far."""
        rows: list[Any] = await self.ledger(run_id, "message.delta")
        return [row.data["chunk"]["content"] for row in rows]

    async def answers(self) -> list[str]:
        """Read what the agent has said in the conversation, oldest first."""
        items = (await self.client.transcript(self.conversation_id)).items
        return [str(item.content) for item in reversed(items) if item.role == "assistant"]

    async def audited(self, run_id: str, last: str) -> "list[AccessRow]":
        """Wait until the audit of a run holds the call that is its last one, and read it."""

        async def rows() -> "list[AccessRow]":
            found = await self.host.accesses(run_id)
            return found if found and found[-1].action == last else []

        return await eventually(rows)

    @property
    def prompts(self) -> list[list[dict[str, Any]]]:
        """The messages that each call of a model had."""
        return [request.json["messages"] for request in self.stub.requests]


def says(*words: str) -> Behaviour:
    """A model that streams these words."""

    async def behave(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.send_words(*words)
        await reply.end_stream()

    return behave


def asks_for(tool: str, arguments: dict[str, Any]) -> Behaviour:
    """A model that asks for a tool, its arguments in pieces as models send them."""
    text = json.dumps(arguments)
    half = len(text) // 2
    first = {"index": 0, "id": "call-1", "type": "function", "function": {"name": tool, "arguments": text[:half]}}
    second = {"index": 0, "function": {"arguments": text[half:]}}

    async def behave(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        for fragment in (first, second):
            await reply.send_event(chunk({"tool_calls": [fragment]}))
        await reply.end_stream("tool_calls")

    return behave


def refuses(status: int, message: str) -> Behaviour:
    """A model that answers with an error."""

    async def behave(_request: StubRequest, reply: Reply) -> None:
        await reply.send_json(status, {"error": {"message": message}})

    return behave


async def repeats_last_message(request: StubRequest, reply: Reply) -> None:
    """A model that says what the last message of its prompt says."""
    await says("It is: ", json.dumps(request.json["messages"][-1]["content"]))(request, reply)


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """A model that behaves like these, call by call; like the last one from then on."""
    left = list(behaviours)

    async def behave(request: StubRequest, reply: Reply) -> None:
        current = left.pop(0) if len(left) > 1 else left[0]
        await current(request, reply)

    return behave


class Hanging:
    """A model that says three words, and then nothing until whoever asked goes away."""

    def __init__(self) -> None:
        self.left = 0

    async def __call__(self, _request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.send_words("one ", "two ", "three ")
        await reply.until_disconnected()
        self.left += 1
