"""What a run may reach, and taking it back (D-15)."""

from typing import cast

from fastapi import APIRouter
from sqlalchemy.ext.asyncio import AsyncConnection

from api.acceptance import Answer
from api.announcements import tell_readers
from api.auth import AuthenticatedRoute, RunAdmin, RunReader
from api.encoding import JsonResponse
from api.idempotency import IdempotencyKey, KeyedRequest
from api.models import AuthorizationRead, RevokeRequest
from api.problems import invalid
from api.routes.answers import answer_with
from api.routes.paths import RunId
from api.routes.responses import problems
from api.services import Host
from host_api.authorization import Authorization, Revocation
from runhost.protocol import JsonObject, JsonValue
from stores.errors import NotGranted
from stores.revocations import RevocationStore, StoredAuthorization

router = APIRouter(prefix="/v1/runs/{run_id}/authorization", route_class=AuthenticatedRoute, tags=["runs"])


@router.get("", operation_id="getRunAuthorization", response_model=AuthorizationRead, responses=problems(404))
async def get_authorization(run_id: RunId, caller: RunReader, host: Host) -> JsonResponse:
    """Read what a run was granted, what was taken back, and what is left."""
    async with host.reads.connect() as connection:
        stored = await RevocationStore(connection).read(caller.workspace_id, run_id)
    return JsonResponse(_read(str(run_id), stored))


@router.post(
    "/revoke",
    operation_id="revokeRunGrant",
    response_model=AuthorizationRead,
    responses=problems(404, 409, body=True),
)
async def revoke_grant(
    run_id: RunId, body: RevokeRequest, caller: RunAdmin, host: Host, idempotency_key: IdempotencyKey = None
) -> JsonResponse:
    """Take something back from a run that has not ended, or everything.

    It counts from the run's next call on, and within a second for a call that lasts. Taking back again changes
    nothing; what the run was never granted is refused with 422. There is no way to give anything back: what is
    granted later is for the next run.
    """
    keyed = KeyedRequest(caller.workspace_id, idempotency_key, f"revokeGrant {run_id}", body.model_dump(mode="json"))
    sequence: int | None = None

    async def write(connection: AsyncConnection) -> Answer:
        async def act() -> Answer:
            nonlocal sequence
            store = RevocationStore(connection)
            sequence = await store.revoke(caller.workspace_id, run_id, body.kind, body.id, body.reason)
            return Answer(200, _read(str(run_id), await store.read(caller.workspace_id, run_id)))

        return await keyed.answer_once(connection, act)

    try:
        answer = await host.acceptance.carry_out(write)
    except NotGranted as refused:
        raise invalid("id", str(refused), body.id, status=422) from None
    if sequence is not None:
        await tell_readers(host.engine, run_id, sequence)
    return answer_with(answer)


def _read(run_id: str, stored: StoredAuthorization) -> JsonObject:
    effective: JsonValue = None
    if stored.snapshot is not None:
        snapshot = Authorization.model_validate(stored.snapshot)
        taken = [Revocation.model_validate(entry) for entry in stored.revocations]
        effective = snapshot.without(taken).model_dump(mode="json")
    return {
        "run_id": run_id,
        "snapshot": stored.snapshot,
        "revocations": cast("JsonValue", stored.revocations),
        "effective": effective,
    }
