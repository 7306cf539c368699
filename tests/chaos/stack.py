"""Every process of a host as a real child process, each of which can be killed and started again."""

import asyncio
import os
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from runhost.cli.dev_stack import COMMANDS, DATABASE, Command
from runhost.cli.keys import ensure_dev_key
from runhost.cli.migrate import upgrade
from runhost.embedded import DataDirectory, EmbeddedPostgres, EmbeddedTemporal
from runhost.embedded.loopback import LOOPBACK, claim_port, http_status
from stores.keys import new_secret
from tests.eventually import eventually
from workflows.search_attributes import KEYWORDS

HTTP_OK = 200
SCRIPTED = "plugin:runhost/scripted/default"
# Short, so that a lost worker is noticed within a test's patience.
HEARTBEAT_TIMEOUT_SECONDS = 3


@dataclass
class Stack:
    """Postgres, Temporal, one API and any number of workers."""

    directory: DataDirectory
    key: str = field(default_factory=new_secret)
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.postgres = EmbeddedPostgres(self.directory)
        self.temporal = EmbeddedTemporal(self.directory, search_attributes={key.name: "Keyword" for key in KEYWORDS})
        self.api_port = claim_port("the API", 0)
        self.workers: list[Command] = []
        self.http = httpx.AsyncClient(
            base_url=f"http://{LOOPBACK}:{self.api_port}",
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=20,
        )

    async def start(self) -> None:
        """Start everything, with two workers, and create the agent ``a1``."""
        await self.postgres.start()
        await self.postgres.ensure_database(DATABASE)
        await asyncio.to_thread(upgrade, self.database_url)
        await ensure_dev_key(self.database_url, self.key)
        await self.temporal.start()
        self.api = self._command("api")
        for _ in range(2):
            await self.add_worker()
        await self.api.start()
        await self.request("PUT", "/v1/agents/a1", json=self.agent([{"echo": True}, {"completed": "stop"}]))
        await self.request("PUT", "/v1/bindings/b1", json={"agent_id": "a1"})

    async def stop(self) -> None:
        """Stop everything, in order."""
        await self.http.aclose()
        for service in (self.api, *self.workers, self.temporal, self.postgres):
            await service.stop()

    @property
    def database_url(self) -> str:
        """Where the facts live."""
        return self.postgres.url(DATABASE)

    async def add_worker(self) -> Command:
        """Start one more worker."""
        worker = self._command("worker")
        await worker.start()
        self.workers.append(worker)
        return worker

    def agent(self, script: list[Any], **runner_config: Any) -> dict[str, Any]:
        """Return the config of an agent that plays ``script``."""
        return {
            "runner_id": SCRIPTED,
            "runner_config": {"script": script, "timeout": 60, **runner_config},
            "heartbeat_timeout_seconds": HEARTBEAT_TIMEOUT_SECONDS,
        }

    async def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Call the API and return its answer, which must be a success."""
        response = await self.http.request(method, path, **options)
        assert response.is_success, (response.status_code, response.text)
        return response.json()

    async def send(self, script: list[Any], text: str = "hello") -> str:
        """Let the agent play ``script`` for a new message; return the run's id."""
        await self.request("PUT", "/v1/agents/a1", json=self.agent(script))
        return await self.post_message(text)

    async def post_message(self, text: str = "hello") -> str:
        """Post a new message; return the id of the run that it was accepted as."""
        envelope = {
            "event_id": uuid.uuid4().hex,
            "event_type": "message.received",
            "source": "platform",
            "conversation_id": "c1",
            "input": {"text": text},
            "delivery": {"surface": "test", "supports_streaming": True},
        }
        return (await self.request("POST", "/v1/events", json=envelope))["run_id"]

    async def run(self, run_id: str) -> dict[str, Any]:
        """Read a run."""
        return await self.request("GET", f"/v1/runs/{run_id}")

    async def ended(self, run_id: str) -> dict[str, Any]:
        """Wait for the end of a run and return it."""

        async def find() -> dict[str, Any] | None:
            with suppress(httpx.TransportError):
                response = await self.http.get(f"/v1/runs/{run_id}")
                if response.is_success and response.json()["finished_at"]:
                    return response.json()
            return None

        run = await eventually(find, within_seconds=45)
        assert run is not None
        return run

    async def ledger(self, run_id: str) -> list[dict[str, Any]]:
        """Read the whole ledger of a run."""
        rows: list[dict[str, Any]] = []
        query: dict[str, Any] = {"limit": 200}
        while True:
            page = await self.request("GET", f"/v1/runs/{run_id}/events", params=query)
            rows += page["items"]
            if not page["has_more"]:
                return rows
            query["cursor"] = page["next_cursor"]

    async def streaming(self, run_id: str, deltas: int = 3) -> int:
        """Wait until a run streams; return its newest sequence, which a reader has seen by then."""

        async def newest() -> int | None:
            rows = await self.ledger(run_id)
            return rows[-1]["sequence"] if sum(row["type"] == "message.delta" for row in rows) >= deltas else None

        sequence = await eventually(newest)
        assert sequence is not None
        return sequence

    async def worker_of(self, run_id: str) -> int:
        """Return the pid of the worker that holds a run."""
        attempts = await self.request("GET", f"/v1/runs/{run_id}/attempts")
        return int(attempts["items"][-1]["worker_identity"].rpartition(":")[2])

    def _command(self, name: str) -> Command:
        async def answers() -> bool:
            with suppress(OSError, TimeoutError):
                return await http_status(self.api_port, "/healthz") == HTTP_OK
            return False

        environment = os.environ | {
            "RUNHOST_DATABASE_URL": self.database_url,
            "RUNHOST_TEMPORAL_ADDRESS": self.temporal.address,
            "RUNHOST_API_PORT": str(self.api_port),
            "RUNHOST_GRACEFUL_SHUTDOWN": "0",
            "RUNHOST_LOG_FORMAT": "json",
            **self.settings,
        }
        is_ready = answers if name == "api" else None
        label = name if name == "api" else f"worker-{len(self.workers) + 1}"
        return Command(label, self.directory, COMMANDS[name], environment, is_ready=is_ready)
