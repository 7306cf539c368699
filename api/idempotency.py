"""`Idempotency-Key`: one request, one effect, one answer, however often it is sent (API.md)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Header
from sqlalchemy.ext.asyncio import AsyncConnection

from api.acceptance import Answer
from runhost.protocol import Identifier, JsonObject, JsonValue
from stores.idempotency import IdempotencyStore
from stores.jsonb import digest

IdempotencyKey = Annotated[
    Identifier | None,
    Header(
        alias="Idempotency-Key",
        description="Any text of at most 255 characters. The same request under the same key is carried out once "
        "within 24 hours; repeats are answered like the first, with `Idempotent-Replayed: true`.",
    ),
]


@dataclass(frozen=True)
class KeyedRequest:
    """A request and the key it came with, if any.

    Attributes:
        operation: What was asked for, and of what: a key stands for one operation.
        content: The body as it was understood; equal bodies are the same request however they are written.
    """

    workspace_id: str
    key: str | None
    operation: str
    content: JsonValue

    async def find_answer(self, connection: AsyncConnection) -> Answer | None:
        """Return the answer that was kept, if any; for what has to be done before `answer_once`.

        Raises:
            IdempotencyKeyReused: The key stands for another request.
        """
        if self.key is None:
            return None
        store = IdempotencyStore(connection, self.workspace_id)
        kept = await store.find(self.key, self.operation, digest(self.content))
        return None if kept is None else _replayed(kept)

    async def answer_once(self, connection: AsyncConnection, act: Callable[[], Awaitable[Answer]]) -> Answer:
        """Act and keep the answer in the caller's transaction, or return the answer that was kept.

        Raises:
            IdempotencyKeyInUse: The first request with the key is not answered yet.
            IdempotencyKeyReused: The key stands for another request.
        """
        if self.key is None:
            return await act()
        store = IdempotencyStore(connection, self.workspace_id)
        kept = await store.claim(self.key, self.operation, digest(self.content))
        if kept is not None:
            return _replayed(kept)
        answer = await act()
        await store.keep(
            self.key, {"status": answer.status, "body": answer.body, "headers": cast("JsonValue", answer.headers)}
        )
        return answer


def _replayed(kept: JsonObject) -> Answer:
    return Answer(
        status=cast("int", kept["status"]),
        body=cast("JsonObject", kept["body"]),
        headers=cast("dict[str, str]", kept["headers"]),
        is_replayed=True,
    )
