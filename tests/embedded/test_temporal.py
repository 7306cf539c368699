import os
import signal
import socket
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from runhost.embedded import DataDirectory, EmbeddedExtraMissing, EmbeddedTemporal, PortInUse
from runhost.embedded import temporal as temporal_module
from runhost.embedded.temporal import RETENTION
from tests.processes import is_alive


@pytest.fixture
async def temporal(data_directory: DataDirectory) -> AsyncIterator[EmbeddedTemporal]:
    server = EmbeddedTemporal(data_directory, search_attributes={"RunhostStatus": "Keyword"}, stop_grace_seconds=0.0)
    yield server
    await server.stop()


async def test_start_serves_and_stop_leaves_no_process(temporal: EmbeddedTemporal) -> None:
    assert not await temporal.health()

    await temporal.start()
    pid = temporal.pid
    assert await temporal.health()
    assert temporal.ui_url is not None

    await temporal.stop()
    assert pid is not None
    assert not is_alive(pid)
    assert not await temporal.health()


async def test_namespace_has_attributes_and_long_retention(temporal: EmbeddedTemporal) -> None:
    await temporal.start()
    client = await Client.connect(temporal.address)

    listed = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace="default"))
    described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))

    assert listed.custom_attributes["RunhostStatus"] == IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    assert described.config.workflow_execution_retention_ttl.ToTimedelta() == RETENTION


async def test_killed_server_starts_again_with_its_workflows(temporal: EmbeddedTemporal) -> None:
    await temporal.start()
    client = await Client.connect(temporal.address)
    handle = await client.start_workflow("Nobody", id=uuid.uuid4().hex, task_queue="nobody")

    assert temporal.pid is not None
    os.kill(temporal.pid, signal.SIGKILL)
    assert await temporal.wait() == -signal.SIGKILL
    await temporal.start()

    # The same client: address and port have not changed.
    assert (await handle.describe()).status is not None


async def test_server_ends_with_its_killed_owner_and_recovers(data_path: Path, start_owner) -> None:
    owner, server = await start_owner("temporal")
    owner.kill()
    await owner.wait()

    with DataDirectory(data_path) as directory:
        temporal = EmbeddedTemporal(directory, port=server["port"], ui_port=None, stop_grace_seconds=0.0)
        await temporal.start()
        assert not is_alive(server["pid"])
        assert temporal.port == server["port"]
        await temporal.stop()


@pytest.mark.parametrize("option", ["port", "ui_port"])
async def test_busy_port_is_named(data_directory: DataDirectory, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        temporal = EmbeddedTemporal(data_directory, **{option: port})
        with pytest.raises(PortInUse, match=f"Port {port} for .*emporal.* is already in use"):
            await temporal.start()
        assert temporal.pid is None


async def test_missing_wheel_names_the_extra(data_directory: DataDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporal_module, "WHEEL", "no-such-wheel")

    with pytest.raises(EmbeddedExtraMissing, match=r"runhost\[embedded\]"):
        EmbeddedTemporal(data_directory)
