"""What operators rely on: health, figures, the OpenAPI document, failures that say nothing of what was sent."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog
from temporalio.client import Client

from api.encoding import encode
from runhost.cli.migrate import upgrade
from runhost.embedded import DataDirectory, EmbeddedPostgres
from runhost.protocol.host_api import HOST_METHODS
from stores.engine import build_engine
from stores.events import EventStore
from stores.runs import RunStore
from tests.api.conftest import Host, NewHost, assemble, event, start
from workflows.client import connect


async def test_health_says_that_the_process_lives(host: Host) -> None:
    answer = await (await host.bearer(None)).get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "version": "0.0.1"})


async def test_ready_with_database_and_temporal(host: Host) -> None:
    answer = await (await host.bearer(None)).get("/readyz")
    assert (answer.status_code, answer.json()) == (
        200,
        {"status": "ready", "database": "ok", "temporal": "ok"},
    )


async def test_ready_without_temporal(new_host: NewHost) -> None:
    host = await new_host(temporal=await connect("127.0.0.1:1", lazy=True))
    answer = await host.client.get("/readyz")
    assert (answer.status_code, answer.json()["temporal"]) == (200, "unavailable")


async def test_lost_database_is_told_with_when_to_come_back(
    data_directory: DataDirectory, temporal_client: Client
) -> None:
    postgres = EmbeddedPostgres(data_directory, durable=False)
    await postgres.start()
    await asyncio.to_thread(upgrade, postgres.url())
    async with AsyncExitStack() as stack:
        host = await start(assemble(stack, postgres.url(), temporal_client))
        await postgres.stop()
        ready = await host.client.get("/readyz")
        assert (ready.status_code, ready.json()["database"]) == (503, "unavailable")
        assert (await host.client.get("/healthz")).status_code == 200
        for method, path in (("GET", "/v1/runs"), ("POST", "/v1/events")):
            answer = await host.client.request(method, path, json=event())
            problem = answer.json()
            assert (answer.status_code, problem["code"], problem["retryable"]) == (503, "engine_unavailable", True)
            assert int(answer.headers["retry-after"]) > 0
        await postgres.start()
        assert (await host.client.post("/v1/events", json=event())).status_code == 202
    await postgres.stop()


async def test_database_that_comes_back_is_used_again(new_host: NewHost) -> None:
    host = await new_host()
    async with host.engine.begin() as connection:
        await connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert (await host.client.get("/v1/runs")).status_code == 200


async def test_full_pool_is_told_with_when_to_come_back(new_host: NewHost, database_url: str) -> None:
    # One connection is the stream hub's, the other one is taken here.
    engine = build_engine(database_url, pool_size=2, application_name="test")
    host = await new_host(engine=engine)
    engine.sync_engine.pool._timeout = 0.1  # type: ignore[attr-defined]
    async with engine.connect():
        answer = await host.client.get("/v1/runs")
    await engine.dispose()
    assert (answer.status_code, answer.json()["retryable"]) == (503, True)


async def test_bug_is_logged_by_its_place_and_told_without_detail(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-9: neither answer nor log quote what was sent."""

    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("canary")

    monkeypatch.setattr(RunStore, "list", broken)
    with structlog.testing.capture_logs() as logs:
        answer = await host.client.get("/v1/runs", params={"agent_id": "canary"})
    assert (answer.status_code, answer.json()["code"]) == (500, "runtime_error")
    assert answer.headers["content-type"] == "application/problem+json"
    assert "canary" not in answer.text
    assert [(entry["event"], entry["error"], entry["route"]) for entry in logs] == [
        ("api.failed", "RuntimeError", "/v1/runs")
    ]
    assert "canary" not in str(logs)
    assert any("broken" in frame for frame in logs[0]["frames"])


async def test_statement_that_is_wrong_is_a_bug_and_no_outage(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: EventStore, *_: Any, **__: Any) -> None:
        await self._connection.exec_driver_sql("SELECT nothing")

    monkeypatch.setattr(EventStore, "list", broken)
    answer = await host.client.get("/v1/events")
    assert answer.status_code == 500
    assert "SELECT" not in answer.text


async def test_figures_name_routes_and_never_ids(new_host: NewHost) -> None:
    host = await new_host()
    run = await host.run(conversation_id="canary")
    await host.client.get(f"/v1/runs/{run['run_id']}")
    await host.client.get("/v1/conversations/canary/transcript")
    await host.client.get("/canary")
    await host.client.post("/v1/events", json=event("canary"))
    figures = (await (await host.bearer(None)).get("/metrics")).text
    assert 'runhost_http_requests_total{method="GET",route="/v1/runs/{run_id}",status="200"} 1.0' in figures
    assert 'route="/v1/conversations/{conversation_id}/transcript"' in figures
    assert 'runhost_events_total{disposition="ignored"} 1.0' in figures
    assert 'runhost_run_starts_total{outcome="started"} 1.0' in figures
    assert "canary" not in figures
    assert run["run_id"] not in figures


class TestOpenApi:
    async def test_document_is_openapi_3_1_with_stable_operation_ids(self, host: Host) -> None:
        document = (await (await host.bearer(None)).get("/openapi.json")).json()
        assert document["openapi"].startswith("3.1")
        operations = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
        assert len(operations) == len(set(operations))
        assert {operation for operation in operations if not operation.startswith("host")} == {
            *("postEvent", "listEvents", "getEvent"),
            *("createRun", "listRuns", "getRun", "cancelRun", "streamRun"),
            *("listRunEvents", "listAttempts", "listRunArtifacts", "listRunAccesses"),
            *("getRunAuthorization", "revokeRunGrant"),
            *("getTranscript", "searchTranscript", "getArtifact", "getArtifactContent"),
            *("putAgent", "listAgents", "getAgent", "putBinding", "listBindings", "getBinding", "listRunners"),
            *("putModel", "listModels", "getModel", "deleteModel"),
            *("putToolServer", "listToolServers", "getToolServer", "deleteToolServer", "refreshToolServer"),
            *("listTools", "getTool"),
            *("putSkill", "listSkills", "getSkill", "deleteSkill"),
            *("putFile", "listFiles", "getFile", "getFileContent", "deleteFile"),
            *("putKnowledgeBase", "listKnowledgeBases", "getKnowledgeBase", "deleteKnowledgeBase"),
            *("putKnowledgeDocument", "listKnowledgeDocuments", "getKnowledgeDocument"),
            *("getKnowledgeDocumentContent", "deleteKnowledgeDocument", "retrieveKnowledge"),
            *("getHealth", "getReadiness", "getMetrics"),
        }
        assert {"hostInvokeLlmStream", "hostStateGet", "hostGetLangbotVersion"} < set(operations)
        assert sum(operation.startswith("host") for operation in operations) == len(HOST_METHODS)

    async def test_refusals_are_described_as_problems(self, host: Host) -> None:
        document = host.app.openapi()
        assert "HTTPValidationError" not in document["components"]["schemas"]
        answers = document["paths"]["/v1/runs"]["post"]["responses"]
        for status in ("400", "401", "403", "404", "409", "413", "415", "422", "503"):
            schema = answers[status]["content"]["application/problem+json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/ProblemDocument"}

    @pytest.mark.parametrize(
        ("path", "methods"), [("/v1/runs", "GET, POST"), ("/v1/models/m1", "DELETE, GET, PUT"), ("/healthz", "GET")]
    )
    async def test_method_that_a_path_does_not_take_is_told_those_that_it_takes(
        self, host: Host, path: str, methods: str
    ) -> None:
        answer = await host.client.patch(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods)

    async def test_routes_ask_for_a_key(self, host: Host) -> None:
        paths = host.app.openapi()["paths"]
        assert paths["/v1/runs"]["get"]["security"] == [{"bearer": []}]
        assert paths["/healthz"]["get"]["security"] == []

    async def test_bodies_are_closed(self, host: Host) -> None:
        schemas = host.app.openapi()["components"]["schemas"]
        for name in ("AgentEventEnvelope", "RunRequest", "CancelRequest", "BindingRequest"):
            assert schemas[name]["additionalProperties"] is False


class TestEncoding:
    def test_times_are_rfc_3339_in_utc(self) -> None:
        assert encode({"at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}) == b'{"at":"2026-01-02T03:04:05Z"}'

    def test_text_without_utf_8_is_escaped(self) -> None:
        assert encode(["\ud800", datetime(2026, 1, 2, tzinfo=UTC)]) == b'["\\ud800","2026-01-02T00:00:00Z"]'

    def test_what_is_no_json_is_a_bug(self) -> None:
        with pytest.raises(TypeError):
            encode(object())
