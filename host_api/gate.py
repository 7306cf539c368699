"""The gate: every call of every runner passes it, in process and over HTTP alike (HOST 8.3, INV-10).

In this order: who calls, how often, which method, with what, may it; then the method, within the deadline;
then the size of the answer. Whatever happens, one row of the audit tells it.
"""

import asyncio
import json
import time
import traceback
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, suppress
from uuid import UUID

import orjson
import structlog
from pydantic import ValidationError

from host_api.audit import Access, AccessAudit
from host_api.authentication import Authenticator, CredentialsRefused, belongs
from host_api.definition import Call, MethodDefinition
from host_api.errors import HostCallError, not_found, too_large
from host_api.limits import CallLimits, RateLimiter
from host_api.methods import ALL_METHODS
from host_api.requirements import Target
from host_api.services import HostServices
from host_api.session import Credentials, RunSession
from host_api.watch import RECHECK_SECONDS, CallWatch
from runhost.protocol import ErrorCode, JsonObject, StrictModel, describe_validation
from runhost.protocol.host_api import HOST_METHODS
from stores.availability import is_unavailable
from stores.cursors import InvalidCursor
from stores.errors import NotFound
from stores.jsonb import encoded_size

_MAX_SHOWN_METHOD = 60

UNKNOWN_METHOD = "(unknown method)"
"""What the audit calls a method that there is not; its resource is what was asked for."""

CANCELLED = "cancelled"
"""What the audit says of a call that its caller gave up."""

_log = structlog.get_logger(__name__)


class MethodsIncomplete(Exception):
    """The host API cannot start: a method is not built, built twice, or declares no requirement."""


def method_table(definitions: Iterable[MethodDefinition]) -> Mapping[str, MethodDefinition]:
    """Return the methods by name.

    Raises:
        MethodsIncomplete: They are not exactly those of `HOST_METHODS`, or one declares no requirement.
    """
    table: dict[str, MethodDefinition] = {}
    for definition in definitions:
        if definition.name in table:
            raise MethodsIncomplete(f"{definition.name} is built twice")
        # Checked although the type says so: a method that anybody may call must not come to be by a slip.
        if not hasattr(definition.requirement, "check"):
            raise MethodsIncomplete(f"{definition.name} declares no requirement")
        table[definition.name] = definition
    missing, unknown = HOST_METHODS.keys() - table.keys(), table.keys() - HOST_METHODS.keys()
    if missing or unknown:
        raise MethodsIncomplete(f"not built: {sorted(missing)}; not in the protocol: {sorted(unknown)}")
    return table


class HostApi:
    """Serves calls. Safe for any number of them at once; each is independent of the others.

    Args:
        services: What the methods work with.
        audit: Where accesses are noted.
        limits: How often one run may call, and how much at once.
        methods: Their definitions.

    Raises:
        MethodsIncomplete: See `method_table`.
    """

    def __init__(
        self,
        services: HostServices,
        audit: AccessAudit,
        *,
        limits: CallLimits | None = None,
        methods: Iterable[MethodDefinition] = ALL_METHODS,
    ) -> None:
        self._services = services
        self._audit = audit
        self._authenticator = Authenticator(services.pool)
        self._limits = limits or CallLimits()
        self._limiter = RateLimiter(self._limits)
        self._methods = method_table(methods)

    @property
    def services(self) -> HostServices:
        """What the methods work with."""
        return self._services

    async def call(self, credentials: Credentials, method: str, params: JsonObject | bytes) -> JsonObject:
        """Call a method that answers once; ``params`` is an object, or its JSON. Returns the answer's fields.

        Raises:
            HostCallError: It is refused, or failed.
        """
        passage = _Passage(credentials, method, time.perf_counter())
        try:
            definition, call, parsed = await self._pass(passage, params, is_stream=False)
            async with self._watch(passage, definition, parsed).step():
                answer = await definition.run(call, parsed)
            return _document(answer, self._limits)
        except Exception as error:  # noqa: BLE001 - the boundary of the host API: nothing leaves as it was raised
            raise passage.fail(error) from None
        except asyncio.CancelledError:
            passage.result = CANCELLED
            raise
        finally:
            await self._audit.note(passage.row())

    async def stream(
        self, credentials: Credentials, method: str, params: JsonObject | bytes
    ) -> AsyncGenerator[JsonObject, None]:
        """Call a method that streams, and yield its events; closing the generator ends the call.

        Raises:
            HostCallError: It is refused before the first event, or failed between two.
        """
        passage = _Passage(credentials, method, time.perf_counter())
        try:
            definition, call, parsed = await self._pass(passage, params, is_stream=True)
            watch = self._watch(passage, definition, parsed)
            async with aclosing(definition.run(call, parsed)) as events:
                while True:
                    async with watch.step():
                        event = await anext(events, None)
                    if event is None:
                        break
                    yield _document(event, self._limits)
        except Exception as error:  # noqa: BLE001 - as in `call`
            raise passage.fail(error) from None
        except (asyncio.CancelledError, GeneratorExit):
            passage.result = CANCELLED
            raise
        finally:
            await self._audit.note(passage.row())

    async def _pass(
        self, passage: "_Passage", params: JsonObject | bytes, *, is_stream: bool
    ) -> tuple[MethodDefinition, Call, StrictModel]:
        credentials, definition = passage.credentials, self._methods.get(passage.method)
        max_age = RECHECK_SECONDS if definition is not None and definition.is_fenced else 0.0
        session = passage.session = await self._authenticator.find(credentials.token, max_age_seconds=max_age)
        if session is None or not belongs(session, credentials):
            raise CredentialsRefused
        self._limiter.take(session.run_id)
        if definition is None:
            raise not_found(f"There is no method {passage.method[:_MAX_SHOWN_METHOD]!r} in the host API.")
        if definition.wire.is_stream != is_stream:
            raise HostCallError(
                ErrorCode.INVALID_ARGUMENT,
                f"{passage.method} answers {'once' if is_stream else 'with a stream'}; call it that way.",
            )
        parsed = _parse(definition, params, self._limits)
        passage.target = definition.requirement.target(parsed)
        definition.requirement.check(session.authorization, parsed)
        return definition, Call(session, self._services), parsed

    def _watch(self, passage: "_Passage", definition: MethodDefinition, params: StrictModel) -> CallWatch:
        async def recheck() -> None:
            session = await self._authenticator.find(passage.credentials.token)
            if session is None:
                raise CredentialsRefused
            definition.requirement.check(session.authorization, params)

        return CallWatch(passage.session.deadline_at if passage.session else None, recheck)


class _Passage:
    """One call on its way through the gate, as the audit will tell it."""

    def __init__(self, credentials: Credentials, method: str, began: float) -> None:
        self.credentials = credentials
        self.method = method
        self.session: RunSession | None = None
        self.target = Target()
        self.result = "ok"
        self._began = began

    def fail(self, error: Exception) -> HostCallError:
        """Note a failure and return what the caller is told of it."""
        failure = _failure(error, self.method)
        self.result = failure.code.value
        return failure

    def row(self) -> Access:
        """Return the row. A caller without a session is named by the run that it claims, of nobody's workspace."""
        session = self.session
        return Access(
            workspace_id=session.workspace_id if session else "",
            run_id=session.run_id if session else _claimed(self.credentials.run_id),
            attempt=session.attempt if session else None,
            runner_id=session.runner_id if session else None,
            # What a caller makes up is no name of ours: it may hold anything, and stands where anything may.
            action=self.method if self.method in HOST_METHODS else UNKNOWN_METHOD,
            resource=self.target.resource if self.method in HOST_METHODS else self.method,
            scope=self.target.scope,
            result=self.result,
            duration_us=int((time.perf_counter() - self._began) * 1_000_000),
        )


def _parse(definition: MethodDefinition, params: JsonObject | bytes, limits: CallLimits) -> StrictModel:
    wire, limit = definition.wire, limits.request_bytes_of(definition.wire)
    size = len(params) if isinstance(params, bytes) else encoded_size(params)
    if size > limit:
        raise too_large(f"The parameters of {definition.name} are {size} bytes of JSON; at most {limit} are taken.")
    try:
        return wire.params.model_validate(_object(params) if isinstance(params, bytes) else params)
    except ValidationError as error:
        raise HostCallError(ErrorCode.INVALID_ARGUMENT, describe_validation(error)) from None


def _object(body: bytes) -> object:
    try:
        return orjson.loads(body or b"{}")
    except orjson.JSONDecodeError as error:
        # Valid JSON may hold lone surrogates, which only the standard library reads (D-31).
        with suppress(ValueError, RecursionError):
            return json.loads(body)
        raise HostCallError(ErrorCode.INVALID_ARGUMENT, f"The parameters are not valid JSON: {error}.") from None


def _document(answer: StrictModel, limits: CallLimits) -> JsonObject:
    document = answer.model_dump(mode="json")
    size = encoded_size(document)
    if size > limits.encoded_response_bytes:
        raise too_large(f"The answer would be {size} bytes of JSON; ask for less at once.")
    return document


def _claimed(run_id: str) -> UUID | None:
    try:
        return UUID(run_id)
    except ValueError:
        return None


def _failure(error: Exception, method: str) -> HostCallError:
    if isinstance(error, HostCallError):
        return error
    if isinstance(error, InvalidCursor):
        return HostCallError(ErrorCode.INVALID_ARGUMENT, f"The cursor cannot be used: {error}.")
    if isinstance(error, NotFound):
        return not_found(str(error))
    if is_unavailable(error):
        return HostCallError(ErrorCode.RUNTIME_ERROR, "The host cannot reach its database.", retryable=True)
    _log.error(
        "host_api.failed",
        method=method,
        error=type(error).__name__,
        # The frames without the message, which may quote what a user wrote (INV-9).
        frames=traceback.format_tb(error.__traceback__),
    )
    return HostCallError(ErrorCode.RUNTIME_ERROR, "The host failed to answer. Its log says where.")
