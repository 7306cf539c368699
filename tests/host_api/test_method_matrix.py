"""Every method of the host API against everything that may stand against it (PM-1 to PM-12).

The methods are read from the protocol: a new one without its row fails `test_every_method_has_its_row`.
"""

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert, update

from host_api.audit import AccessAudit
from host_api.authorization import Authorization
from host_api.errors import HostCallError
from host_api.gate import HostApi
from host_api.methods import ALL_METHODS
from host_api.services import HostServices
from host_api.session import Credentials
from providers.tools import ToolServerAddress
from runhost.protocol import JsonObject, RunStatus
from runhost.protocol.host_api import HOST_METHODS, ToolDetail, ToolResult
from stores.attempts import ActivityExecution, AttemptStore, OpenAttempt
from stores.driver import driver_pool
from stores.engine import build_engine
from stores.files import FileStore
from stores.ingest import Ingest
from stores.knowledge import KnowledgeStore
from stores.knowledge_documents import DocumentStore, prepare_document
from stores.models import ModelStore
from stores.passages import PassageSizes
from stores.runs import RunEnd, RunStore
from stores.skills import SkillStore
from stores.tables import access_audit, agent_run, artifact
from stores.tool_servers import ToolServerStore
from tests.fixtures.databases import TestDatabases
from tests.fixtures.fake_models import FakeModels
from tests.fixtures.grants import everything
from tests.fixtures.host import Host, make_envelope
from tests.host_api.conftest import make_services

IDENTITY = "runhost/scripted"
PROMPT: Any = {"llm_model_uuid": "m1", "messages": [{"role": "user", "content": "hi"}]}
RERANK: Any = {"rerank_model_id": "m1", "query": "q", "documents": ["a", "b"]}
TOO_LONG = "x" * (1024 * 1024)

Narrow: TypeAlias = Callable[[Authorization], Authorization]


def without_resources(authorization: Authorization) -> Authorization:
    return authorization.model_copy(
        update={"resources": type(authorization.resources).model_validate({"storage": {}, "models": []})}
    )


def with_operations(kind: str, operations: list[str]) -> Narrow:
    """Keep the grants of a kind, with other operations."""

    def narrow(authorization: Authorization) -> Authorization:
        kept = [item.model_copy(update={"operations": operations}) for item in getattr(authorization.resources, kind)]
        return authorization.model_copy(update={"resources": authorization.resources.model_copy(update={kind: kept})})

    return narrow


def without_api(flag: str) -> Narrow:
    def narrow(authorization: Authorization) -> Authorization:
        return authorization.model_copy(
            update={"available_apis": authorization.available_apis.model_copy(update={flag: False})}
        )

    return narrow


def without_area(area: str) -> Narrow:
    def narrow(authorization: Authorization) -> Authorization:
        storage = authorization.resources.storage.model_copy(update={f"{area}_storage": False})
        return authorization.model_copy(
            update={"resources": authorization.resources.model_copy(update={"storage": storage})}
        )

    return narrow


def without_scope(authorization: Authorization) -> Authorization:
    left = {name: key for name, key in authorization.state_context.scope_keys.items() if name != "actor"}
    return authorization.model_copy(
        update={"state_context": authorization.state_context.model_copy(update={"scope_keys": left})}
    )


@dataclass(frozen=True)
class Row:
    """One method.

    Attributes:
        granted: Parameters that pass with everything granted.
        not_granted: Takes the grant away; None where a session is all it needs.
        wrong_operation: Leaves the grant with other operations; None where it has none.
        wrong_scope: Parameters, or a narrowing, that reach beyond the run's scope, and the code; None where
            nothing in them can.
        over_limit: Parameters beyond a limit; None where it takes none that could be. What is capped and not
            refused has the code `ok`.
    """

    granted: JsonObject
    not_granted: Narrow | None
    wrong_operation: Narrow | None = None
    wrong_scope: tuple[JsonObject | Narrow, str] | None = None
    over_limit: tuple[JsonObject, str] | None = None


def pull(flag: str, granted: JsonObject, **more: Any) -> Row:
    return Row(granted, without_api(flag), **more)


def state(granted: JsonObject, over_limit: tuple[JsonObject, str]) -> Row:
    return Row(granted, without_api("state"), wrong_scope=(without_scope, "unauthorized"), over_limit=over_limit)


def storage(area: str, granted: JsonObject, over_limit: tuple[JsonObject, str] | None) -> Row:
    return Row(granted, without_api("storage"), wrong_scope=(without_area(area), "unauthorized"), over_limit=over_limit)


VALUE = base64.b64encode(b"bytes").decode()
LARGE = base64.b64encode(bytes(10 * 1024 * 1024 + 1)).decode()
LONG_KEY: Any = ({"key": "k" * 256}, "invalid_argument")
LONG_TEXT_PROMPT: Any = PROMPT | {"messages": [{"role": "user", "content": TOO_LONG}]}
ELSEWHERE: Any = ({"conversation_id": "c2"}, "unauthorized")

_models = with_operations("models", ["rerank"])
_writers = with_operations("models", ["invoke", "stream"])

ROWS: dict[str, Row] = {
    "invoke_llm": Row(
        PROMPT, without_resources, with_operations("models", ["stream"]), None, (LONG_TEXT_PROMPT, "payload_too_large")
    ),
    "invoke_llm_with_usage": Row(
        PROMPT, without_resources, with_operations("models", ["stream"]), None, (LONG_TEXT_PROMPT, "payload_too_large")
    ),
    "invoke_llm_stream": Row(
        PROMPT, without_resources, with_operations("models", ["invoke"]), None, (LONG_TEXT_PROMPT, "payload_too_large")
    ),
    "invoke_llm_stream_events": Row(
        PROMPT, without_resources, with_operations("models", ["invoke"]), None, (LONG_TEXT_PROMPT, "payload_too_large")
    ),
    "invoke_rerank": Row(
        RERANK, without_resources, _writers, None, (RERANK | {"documents": ["d"] * 1_001}, "invalid_argument")
    ),
    "count_tokens": Row(PROMPT, without_resources, _models, None, (LONG_TEXT_PROMPT, "payload_too_large")),
    "get_tool_detail": Row(
        {"tool_name": "t1"},
        without_resources,
        with_operations("tools", ["call"]),
        None,
        ({"tool_name": "t" * 256}, "invalid_argument"),
    ),
    "call_tool": Row(
        {"tool_name": "t1", "parameters": {"n": 1}},
        without_resources,
        with_operations("tools", ["detail"]),
        None,
        ({"tool_name": "t1", "parameters": {"text": TOO_LONG}}, "payload_too_large"),
    ),
    # Without a grant it lists nothing, which refuses nobody and tells nothing.
    "list_knowledge_bases": Row({}, None),
    "retrieve_knowledge": Row(
        {"kb_id": "kb1", "query_text": "penguins"},
        without_resources,
        with_operations("knowledge_bases", ["list"]),
        None,
        ({"kb_id": "kb1", "query_text": "q", "top_k": 101}, "invalid_argument"),
    ),
    "get_prompt": pull("prompt_get", {}),
    "history_page": pull("history_page", {}, wrong_scope=ELSEWHERE, over_limit=({"limit": 1_000}, "ok")),
    "history_search": pull(
        "history_search", {"query": "hello"}, over_limit=({"query": "q" * 10_001}, "invalid_argument")
    ),
    "event_get": pull(
        "event_get",
        {"event_id": "own"},
        wrong_scope=({"event_id": "elsewhere"}, "not_found"),
        over_limit=({"event_id": "e" * 256}, "invalid_argument"),
    ),
    "event_page": pull("event_page", {}, wrong_scope=ELSEWHERE, over_limit=({"limit": 1_000}, "ok")),
    "steering_pull": pull("steering_pull", {}, over_limit=({"limit": 1_000}, "ok")),
    "artifact_metadata": pull(
        "artifact_metadata",
        {"artifact_id": "own"},
        wrong_scope=({"artifact_id": "elsewhere"}, "not_found"),
        over_limit=({"artifact_id": "a" * 256}, "invalid_argument"),
    ),
    "artifact_read": pull(
        "artifact_read",
        {"artifact_id": "own"},
        wrong_scope=({"artifact_id": "elsewhere"}, "not_found"),
        over_limit=({"artifact_id": "own", "limit": 10**12}, "ok"),
    ),
    "artifact_read_range": pull(
        "artifact_read",
        {"artifact_id": "own"},
        wrong_scope=({"artifact_id": "elsewhere"}, "not_found"),
        over_limit=({"artifact_id": "own", "length": 10**12}, "ok"),
    ),
    "state_get": state({"scope": "actor", "key": "k"}, ({"scope": "actor", "key": "k" * 256}, "invalid_argument")),
    "state_set": state(
        {"scope": "actor", "key": "k", "value": {"n": 1}},
        ({"scope": "actor", "key": "k", "value": "x" * 262_145}, "payload_too_large"),
    ),
    "state_delete": state({"scope": "actor", "key": "k"}, ({"scope": "actor", "key": "k" * 256}, "invalid_argument")),
    "state_list": state({"scope": "actor"}, ({"scope": "actor", "limit": 1_000}, "ok")),
    "get_plugin_storage": storage("plugin", {"key": "k"}, LONG_KEY),
    "set_plugin_storage": storage(
        "plugin", {"key": "k", "value_base64": VALUE}, ({"key": "k", "value_base64": LARGE}, "payload_too_large")
    ),
    "delete_plugin_storage": storage("plugin", {"key": "k"}, LONG_KEY),
    "get_plugin_storage_keys": storage("plugin", {}, None),
    "get_workspace_storage": storage("workspace", {"key": "k"}, LONG_KEY),
    "set_workspace_storage": storage(
        "workspace", {"key": "k", "value_base64": VALUE}, ({"key": "k", "value_base64": LARGE}, "payload_too_large")
    ),
    "delete_workspace_storage": storage("workspace", {"key": "k"}, LONG_KEY),
    "get_workspace_storage_keys": storage("workspace", {}, None),
    "get_file": Row(
        {"file_key": "f1"},
        without_resources,
        None,
        None,
        ({"file_key": "f" * 256}, "invalid_argument"),
    ),
    "get_langbot_version": Row({}, None),
}
every_method = pytest.mark.parametrize("name", HOST_METHODS)


def rows_with(part: str) -> Any:
    return pytest.mark.parametrize("name", [name for name, row in ROWS.items() if getattr(row, part) is not None])


class Tools:
    """A tool that answers with its arguments."""

    async def list_tools(self, address: ToolServerAddress) -> list[ToolDetail]:
        return []

    async def call(
        self, address: ToolServerAddress, remote_name: str, parameters: JsonObject, *_: Any, **__: Any
    ) -> ToolResult:
        return ToolResult(result=parameters)


@dataclass
class Workspace:
    """A workspace with one of everything, and runs of conversation ``c1`` in it."""

    host: Host
    services: HostServices
    audit: AccessAudit
    api: HostApi
    tool_name: str = ""

    async def open(self, narrow: Narrow | None = None) -> Credentials:
        """Create a run that may do everything, less what ``narrow`` takes, and open its attempt."""
        async with self.host.engine.begin() as connection:
            runs = RunStore(connection)
            envelope = make_envelope(
                subject={"subject_type": "message", "subject_id": "s1"}, event_id=uuid4().hex, thread_id=None
            )
            accepted = await Ingest(connection, self.host.workspace_id).accept_run(envelope, "a1", {})
            assert accepted.run_id is not None
            row = await runs.load(accepted.run_id)
            authorization = self._granted(everything(row, envelope))
            if narrow is not None:
                authorization = narrow(authorization)
            await runs.freeze(
                row.run_id, authorization=authorization.model_dump(mode="json"), context={}, deadline_at=None
            )
            opened = await AttemptStore(connection).open(
                row.run_id, ActivityExecution("temporal", "1", 1, "test-worker")
            )
        assert isinstance(opened, OpenAttempt)
        return Credentials(opened.token, str(row.run_id), IDENTITY)

    def _granted(self, authorization: Authorization) -> Authorization:
        tools = [item.model_copy(update={"tool_name": self.tool_name}) for item in authorization.resources.tools]
        return authorization.model_copy(
            update={"resources": authorization.resources.model_copy(update={"tools": tools})}
        )

    async def ask(self, credentials: Credentials, name: str, params: JsonObject) -> str:
        """Call a method; return ``ok`` or the code of the refusal, which the audit has to tell as well."""
        if params.get("tool_name") == "t1":
            params = params | {"tool_name": self.tool_name}
        try:
            if HOST_METHODS[name].is_stream:
                answers = [event async for event in self.api.stream(credentials, name, params)]
            else:
                answers = [await self.api.call(credentials, name, params)]
            for answer in answers:
                HOST_METHODS[name].returns.model_validate(answer)
            result = "ok"
        except HostCallError as refusal:
            result = refusal.code.value
        await self.audit.flush()
        async with self.host.engine.connect() as connection:
            rows = await connection.execute(access_audit.select().order_by(access_audit.c.access_id.desc()).limit(1))
            noted = rows.mappings().one()
        assert (noted["action"], noted["result"]) == (name, result)
        return result


@pytest.fixture(scope="module")
async def workspace(
    databases: TestDatabases, migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Workspace]:
    name = await databases.create(migrated_template)
    url = databases.url(name)
    async with AsyncExitStack() as stack:
        engine = build_engine(url, pool_size=5, application_name="tests")
        stack.push_async_callback(databases.drop, name)
        stack.push_async_callback(engine.dispose)
        pool = await stack.enter_async_context(driver_pool(url, size=5, application_name="tests"))
        host = Host(engine, url)
        services = make_services(
            host, pool, file_root=tmp_path_factory.mktemp("files"), models=FakeModels(), tools=Tools()
        )
        audit = await stack.enter_async_context(AccessAudit(pool))
        made = Workspace(host, services, audit, HostApi(services, audit))
        await host.put_agent(bind=False)
        await fill(made)
        yield made


async def fill(workspace: Workspace) -> None:
    """Put one of everything into the workspace, and what lies beyond the reach of its runs."""
    owner = workspace.host.workspace_id
    async with workspace.host.engine.begin() as connection:
        await ModelStore(connection, owner).put(
            {"model_id": "m1", "name": "m1", "base_url": "http://127.0.0.1:9", "model_name": "m"}
        )
        servers = ToolServerStore(connection, owner)
        await servers.put({"server_id": "s1", "transport": "streamable_http", "url": "http://127.0.0.1:9"})
        (tool,) = await servers.replace_tools("s1", [ToolDetail(tool_name="t1")])
        workspace.tool_name = tool.tool_name
        await SkillStore(connection, owner).put({"skill_name": "s1", "instructions": "Be kind."})
        await FileStore(connection, owner).put("f1", b"bytes")
        await KnowledgeStore(connection, owner).put(
            "kb1", {"name": "kb1", "description": None, "kb_type": "postgres", "config": {}}
        )
        await DocumentStore(connection, owner, "kb1").put(
            prepare_document("d1", b"About penguins.", "text/plain", PassageSizes(), name=None, metadata={})
        )
        ingest = Ingest(connection, owner)
        await ingest.accept_run(make_envelope(event_id="own"), "a1", {})
        await ingest.accept_run(make_envelope(event_id="elsewhere", conversation_id="c2"), "a1", {})
        for artifact_id, conversation in (("own", "c1"), ("elsewhere", "c2")):
            await connection.execute(
                insert(artifact).values(
                    workspace_id=owner,
                    artifact_id=artifact_id,
                    artifact_type="file",
                    source="platform",
                    storage_type="metadata_only",
                    bot_id="b1",
                    conversation_id=conversation,
                )
            )


def test_every_method_has_its_row() -> None:
    assert ROWS.keys() == HOST_METHODS.keys()


@every_method
async def test_granted_call_is_answered(workspace: Workspace, name: str) -> None:
    assert await workspace.ask(await workspace.open(), name, ROWS[name].granted) == "ok"


@rows_with("not_granted")
async def test_call_that_is_not_granted_is_refused(workspace: Workspace, name: str) -> None:
    """PM-1, PM-2, PM-3, PM-8, H-A4 to H-A6."""
    credentials = await workspace.open(ROWS[name].not_granted)
    assert await workspace.ask(credentials, name, ROWS[name].granted) == "unauthorized"


@rows_with("wrong_operation")
async def test_right_resource_with_another_operation_is_refused(workspace: Workspace, name: str) -> None:
    """H-A4."""
    credentials = await workspace.open(ROWS[name].wrong_operation)
    assert await workspace.ask(credentials, name, ROWS[name].granted) == "unauthorized"


@rows_with("wrong_scope")
async def test_reaching_beyond_the_scope_is_refused(workspace: Workspace, name: str) -> None:
    """PM-8, PM-11, PM-12, H-A7."""
    row = ROWS[name]
    assert row.wrong_scope is not None
    beyond, code = row.wrong_scope
    if callable(beyond):
        assert await workspace.ask(await workspace.open(beyond), name, row.granted) == code
    else:
        assert await workspace.ask(await workspace.open(), name, row.granted | beyond) == code


@every_method
async def test_run_that_has_ended_is_refused(workspace: Workspace, name: str) -> None:
    """PM-4: also where the gate still remembers the session."""
    credentials = await workspace.open()
    assert await workspace.ask(credentials, name, ROWS[name].granted) == "ok"
    async with workspace.host.engine.begin() as connection:
        runs = RunStore(connection)
        await runs.settle(await runs.load(UUID(credentials.run_id), lock=True), RunEnd(RunStatus.COMPLETED))
    assert await workspace.ask(credentials, name, ROWS[name].granted) == "unauthorized"


@every_method
async def test_older_attempt_is_refused(workspace: Workspace, name: str) -> None:
    """INV-5, PM-4: also where the gate still remembers the session."""
    credentials = await workspace.open()
    assert await workspace.ask(credentials, name, ROWS[name].granted) == "ok"
    async with workspace.host.engine.begin() as connection:
        await AttemptStore(connection).open(
            UUID(credentials.run_id), ActivityExecution("temporal", "1", 2, "test-worker")
        )
    assert await workspace.ask(credentials, name, ROWS[name].granted) == "unauthorized"


@every_method
@pytest.mark.parametrize("identity", [None, "", "acme/other"])
async def test_foreign_identity_is_refused(workspace: Workspace, name: str, identity: str | None) -> None:
    """PM-5, PM-6."""
    credentials = replace(await workspace.open(), plugin_identity=identity)
    assert await workspace.ask(credentials, name, ROWS[name].granted) == "unauthorized"


@rows_with("over_limit")
async def test_call_over_its_limit_is_refused_or_capped(workspace: Workspace, name: str) -> None:
    """H-A8, D-16, D-17."""
    row = ROWS[name]
    assert row.over_limit is not None
    beyond, result = row.over_limit
    assert await workspace.ask(await workspace.open(), name, beyond) == result


@every_method
async def test_run_whose_grants_were_taken_back_is_refused(workspace: Workspace, name: str) -> None:
    """D-15, INV-10: everything but what a session alone allows."""
    credentials = await workspace.open()
    async with workspace.host.engine.begin() as connection:
        await connection.execute(
            update(agent_run)
            .where(agent_run.c.run_id == UUID(credentials.run_id))
            .values(revocations=[{"kind": "run", "id": None}])
        )
    expected = "ok" if ROWS[name].not_granted is None else "unauthorized"
    assert await workspace.ask(credentials, name, ROWS[name].granted) == expected


def test_table_of_methods_is_the_one_that_is_served() -> None:
    assert [method.name for method in ALL_METHODS] == list(HOST_METHODS)
