"""Models that a workspace has to grant (HOST 6)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from sqlalchemy import RowMapping, func, or_, true
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import JsonObject
from stores.errors import ModelNotFound, SecretNotKept
from stores.registry import Registry
from stores.resource_tables import model
from stores.revocations import revoke_everywhere

ModelType: TypeAlias = Literal["llm", "rerank"]
ModelProviderName: TypeAlias = Literal["openai"]


@dataclass(frozen=True)
class ModelRow:
    """A model.

    Attributes:
        model_id: What agents select it by.
        name: For people.
        model_type: Whether it writes or ranks.
        provider: Which interface it speaks; `openai` is any endpoint compatible with OpenAI's.
        base_url: Address of the interface, such as `https://api.example.com/v1`.
        model_name: What the provider calls it.
        api_key: What the provider knows us by. A secret: it is in no answer, no log and no repr.
        context_window_tokens: Size of its context window.
        default_args: Arguments of every call, which a call's own arguments override.
        timeout_seconds: How long a call may take, unless the run's deadline is nearer.
        enabled: Whether it can be granted.
    """

    model_id: str
    name: str
    model_type: ModelType
    provider: ModelProviderName
    base_url: str
    model_name: str
    api_key: str | None = field(repr=False)
    context_window_tokens: int | None
    default_args: JsonObject
    timeout_seconds: float
    enabled: bool
    created_at: datetime
    updated_at: datetime


class ModelStore:
    """Models of one workspace."""

    def __init__(self, connection: AsyncConnection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id
        self._rows = Registry(connection, workspace_id, table=model, key=model.c.model_id, read=_read)

    async def put(self, new: Mapping[str, Any]) -> ModelRow:
        """Create a model, or change it. One that is disabled is taken back from open runs.

        Args:
            new: Fields of `ModelRow` but the times. A new model needs ``model_id``, ``name``, ``base_url`` and
                ``model_name``. What is left out keeps what is stored, or has the default of its column;
                ``api_key`` None takes the key away.

        Raises:
            SecretNotKept: The address changes, and ``api_key`` is left out: a stored key is never sent to
                another address than it was given for.
        """
        statement = insert(model).values(workspace_id=self._workspace_id, **new)
        keeps_address = or_(model.c.api_key.is_(None), model.c.base_url == statement.excluded.base_url)
        row = await self._connection.execute(
            statement.on_conflict_do_update(
                index_elements=[model.c.workspace_id, model.c.model_id],
                set_={**new, "updated_at": func.now()},
                where=true() if "api_key" in new else keeps_address,
            ).returning(model)
        )
        found = row.mappings().one_or_none()
        if found is None:
            raise SecretNotKept(
                f"Model {new['model_id']!r} has an api_key for another base_url; "
                "send the api_key for this one, or null for none."
            )
        if not found["enabled"]:
            await revoke_everywhere(
                self._connection, self._workspace_id, "model", found["model_id"], "The model was disabled."
            )
        return _read(found)

    async def get(self, model_id: str) -> ModelRow:
        """Return a model.

        Raises:
            ModelNotFound: There is none in this workspace.
        """
        found = await self._rows.find(model_id)
        if found is None:
            raise _not_found(model_id)
        return found

    async def list(self, *, after: str = "", limit: int) -> list[ModelRow]:
        """Return models in order of their ids, from behind ``after``."""
        return await self._rows.list(after=after, limit=limit)

    async def delete(self, model_id: str) -> None:
        """Delete a model and take it back from open runs.

        Raises:
            ModelNotFound: There is none in this workspace.
        """
        if not await self._rows.delete(model_id):
            raise _not_found(model_id)
        await revoke_everywhere(self._connection, self._workspace_id, "model", model_id, "The model was deleted.")


def _read(row: RowMapping) -> ModelRow:
    return ModelRow(**{name: value for name, value in row.items() if name != "workspace_id"})


def _not_found(model_id: str) -> ModelNotFound:
    return ModelNotFound(f"There is no model {model_id!r} in this workspace.")
