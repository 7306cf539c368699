"""The journal of one attempt: every result becomes a committed ledger row (DESIGN 7)."""

from collections.abc import Callable

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from activities.commits import CommitBuffer
from activities.deadline import failed_in_time
from activities.projections import MAX_PLAIN_CHARACTERS, Entry, ResultScope, project, transcript_item
from activities.speech import Speech
from runhost.protocol import (
    AgentRunResult,
    HostEventType,
    InvalidPayload,
    JsonObject,
    MalformedResult,
    MessageDeltaData,
    ResultType,
    RunFailedData,
    RunFailureCode,
    RunStatus,
    StrictModel,
    Usage,
    excerpt,
    parse_result,
    read_delta,
    validate_payload,
)
from stores.artifacts import ArtifactStore
from stores.attempts import OpenAttempt
from stores.errors import ArtifactConflict, RunTerminal, SequenceConflict
from stores.journal import AttemptEnd, JournalStore, LedgerRow
from stores.jsonb import dumps, loads
from stores.ledger import LedgerStore
from stores.notifications import LedgerAnnouncer

REASON_CHARACTERS = 2_000
_KNOWN_TYPES = frozenset(ResultType)
_TERMINAL_TYPES = frozenset({ResultType.RUN_COMPLETED, ResultType.RUN_FAILED})

_log = structlog.get_logger(__name__)


class AttemptJournal:
    """Validates, buffers and commits what one attempt says. One writer: the activity that opened the attempt.

    `add` and `close` raise what `CommitBuffer.commit` raises. Once ``end`` is set the attempt has ended, and
    nothing further enters the ledger.
    """

    def __init__(
        self, engine: AsyncEngine, store: JournalStore, announcer: LedgerAnnouncer, opened: OpenAttempt
    ) -> None:
        self._engine = engine
        self._run = opened.run
        self._run_id = str(opened.run.run_id)
        self._attempt = opened.attempt
        self._scope = _result_scope(opened)
        self._log = _log.bind(run_id=self._run_id, attempt=opened.attempt)
        self._buffer = CommitBuffer(engine, store, announcer, opened)
        self._speech = Speech()
        # Artifacts that no message has shown yet; the next one does (H-F9).
        self._references: list[JsonObject] = []
        self._usage: Usage | None = None
        self._highest = 0
        self._is_numbered = False
        self._stopping = False
        self._imposed_end: AttemptEnd | None = None
        self.end: AttemptEnd | None = None
        # What is known of the runner besides its results; asked for when the attempt ends.
        self.diagnose: Callable[[], JsonObject] = dict

    def stopping(self, end: AttemptEnd | None) -> None:
        """Know that the host stops the runner, so that ``cancelled`` is its answer to that and not its own end.

        Args:
            end: How the attempt ends for such an answer; None leaves it open.
        """
        self._stopping, self._imposed_end = True, end

    async def add(self, value: object) -> None:
        """Take one thing that the runner yielded, whatever it is.

        Returns when it is in the buffer (a delta) or committed (anything else). Waits where the database is
        slower than the runner, which is how the runner is throttled.
        """
        if self.end is not None:
            self._log.warning("result.late", code=RunTerminal.code)
            return
        if self._append_plain_delta(value):
            await self._buffer.commit_when_due()
            return
        try:
            parsed = parse_result(value, run_id=self._run_id)
            await self._take(parsed.result, list(parsed.warnings))
        except InvalidPayload as error:
            await self._reject(error, value)
        except (MalformedResult, ArtifactConflict) as error:
            self._append_rejection(str(error), value, None)
            await self._end(_protocol_end(str(error)))

    async def close(self, end: AttemptEnd | None, facts: JsonObject | None = None) -> AttemptEnd | None:
        """Commit what is buffered and, unless the runner has said so itself, how the attempt ended.

        Args:
            end: The end that the host saw; None leaves the attempt open, for another to take over.
            facts: What the last row of the attempt says besides.

        Returns:
            How the attempt ended, None where it was left open.
        """
        if self.end is None and end is not None:
            await self._end(end, facts)
        else:
            await self._buffer.commit()
        return self.end

    def _append_plain_delta(self, value: object) -> bool:
        """Take what nearly every result is, in a quarter of the time; False leaves it to the long way."""
        delta = read_delta(value, run_id=self._run_id)
        if delta is None or delta.sequence not in {None, self._highest + 1}:
            return False
        try:
            text = dumps(delta.data)
        except TypeError:
            return False
        if len(text) > MAX_PLAIN_CHARACTERS:
            return False
        self._highest += 1
        self._is_numbered = self._is_numbered or delta.sequence is not None
        self._speech.accepted += 1
        self._speech.hear(delta.chunk)
        self._buffer.append(LedgerRow(ResultType.MESSAGE_DELTA.value, text, self._highest))
        return True

    async def _take(self, result: AgentRunResult, warnings: list[str]) -> None:
        payload = validate_payload(result)
        end = self._end_by(result, payload)
        if end is None and result.type in _TERMINAL_TYPES:
            self._log.info("result.answers_the_stop", code=RunFailureCode.CANCELLED)
            return
        number = self._highest + 1 if result.sequence is None else result.sequence
        if number <= self._highest and await self._is_repeated(result, payload, number):
            return
        entry = project(result, payload, self._scope, number)
        if entry.artifacts:
            await self._leave_out_known_artifacts(entry)
        warnings += self._follow_numbers(result, number)
        if isinstance(payload, MessageDeltaData):
            self._speech.accepted += 1
            self._speech.hear(payload.chunk)
            self._append(result, entry, number, warnings)
            await self._buffer.commit_when_due()
            return
        if result.type not in _KNOWN_TYPES:
            warnings.append("type: unknown; stored without effects")
        self._follow(result, entry)
        self._append(result, entry, number, warnings)
        if end is not None:
            await self._end(end)
        else:
            await self._buffer.commit()

    def _end_by(self, result: AgentRunResult, payload: StrictModel | None) -> AttemptEnd | None:
        """Return the end that a terminal result means."""
        if result.type == ResultType.RUN_COMPLETED:
            return AttemptEnd(RunStatus.COMPLETED.value)
        if not isinstance(payload, RunFailedData):
            return None
        if self._stopping and payload.code == RunFailureCode.CANCELLED:
            return self._imposed_end
        return failed_in_time(_reported_end(payload), self._run.deadline_at)

    def _follow(self, result: AgentRunResult, entry: Entry) -> None:
        """Note what a result other than a delta means for the attempt."""
        if result.type not in _TERMINAL_TYPES:
            self._speech.accepted += 1
        if entry.artifacts or entry.state or result.type == ResultType.ACTION_REQUESTED:
            self._speech.has_output = True
        if result.type == ResultType.ARTIFACT_CREATED:
            self._references += entry.references
        if entry.message is not None and self._speech.complete(entry.message):
            self._buffer.cause("transcript", [transcript_item(entry.message, self._references, {})])
            self._references = []
            self._buffer.batch.completed_messages += 1

    def _append(self, result: AgentRunResult, entry: Entry, number: int, warnings: list[str]) -> None:
        extras: JsonObject = {}
        if result.usage is not None:
            self._count(result.usage)
            extras["usage"] = result.usage.model_dump(mode="json", exclude_none=True)
        if entry.references:
            extras["artifact_refs"] = list(entry.references)
        if warnings:
            # The texts name fields as the runner wrote them: they belong in the ledger only (INV-9).
            self._log.warning("result.warnings", source_sequence=number, count=len(warnings))
            extras["metadata"] = {"warnings": list(warnings)}
        if entry.artifacts or entry.state or entry.events:
            self._buffer.cause("artifacts", entry.artifacts)
            self._buffer.cause("state", entry.state)
            self._buffer.cause("events", entry.events)
            self._buffer.batch.projections.blobs += entry.blobs
        self._buffer.append(LedgerRow(result.type, entry.text, number, extras or None))

    def _count(self, usage: Usage) -> None:
        """Add to the attempt's usage, and with it to the run's: sums, unknown staying unknown (D-32)."""
        self._usage = usage if self._usage is None else self._usage.merged(usage)
        earlier = self._run.usage
        total = self._usage if earlier is None else earlier.merged(self._usage)
        self._buffer.batch.attempt_usage = self._usage.model_dump(mode="json", exclude_none=True)
        self._buffer.batch.usage = total.model_dump(mode="json", exclude_none=True)

    def _follow_numbers(self, result: AgentRunResult, number: int) -> list[str]:
        """Follow the runner's numbers; gaps are told, never waited for (P-S5, P-S7)."""
        expected = self._highest + 1
        self._highest = max(self._highest, number)
        if result.sequence is None:
            return []
        is_gap = self._is_numbered and number > expected
        self._is_numbered = True
        return [f"sequence: {expected} was expected"] if is_gap else []

    async def _is_repeated(self, result: AgentRunResult, payload: StrictModel | None, number: int) -> bool:
        """Say whether this number was used by the same content; refuse other content (D-22)."""
        await self._buffer.commit()
        async with self._engine.connect() as connection:
            known = await LedgerStore(connection).find_source(self._run.run_id, self._attempt, number)
        if known is None:
            return False
        entry = project(result, payload, self._scope, number)
        if known.type == result.type and known.data == loads(entry.text):
            self._log.warning("result.duplicate", source_sequence=number)
            return True
        reason = f"{SequenceConflict.code}: number {number} was used for another result of this attempt"
        raise InvalidPayload(f"sequence: {reason}", result)

    async def _leave_out_known_artifacts(self, entry: Entry) -> None:
        """Leave out artifacts that stand already, as when a new attempt makes them again (F-23)."""
        async with self._engine.connect() as connection:
            store = ArtifactStore(connection, self._run.workspace_id)
            known = [await store.is_known(str(row["artifact_id"]), _digest_of(row)) for row in entry.artifacts]
        entry.artifacts = [row for row, stands in zip(entry.artifacts, known, strict=True) if not stands]

    async def _reject(self, error: InvalidPayload, value: object) -> None:
        """Keep an invalid result as a host row without effects; a badly reported failure still fails (D-23)."""
        self._append_rejection(error.reason, value, error.result)
        if error.result.type == ResultType.RUN_FAILED:
            await self._end(_protocol_end(error.reason))
        else:
            await self._buffer.commit()

    def _append_rejection(self, reason: str, value: object, result: AgentRunResult | None) -> None:
        self._speech.rejected += 1
        self._log.warning("result.rejected", source_sequence=result.sequence if result else None)
        data: JsonObject = {"reason": reason, "excerpt": excerpt(value)}
        if result is not None:
            data |= {"type": result.type, "source_sequence": result.sequence}
        self._append_host(HostEventType.RESULT_REJECTED, data)

    def _append_host(self, type_: HostEventType, data: JsonObject) -> None:
        self._buffer.append(LedgerRow(type_.value, dumps(data)))

    async def _end(self, end: AttemptEnd, facts: JsonObject | None = None) -> None:
        """Commit the end of the attempt, and what its deltas showed people, in one go."""
        end = self._speech.judge(end, is_answer_expected=self._run.event_type == "message.received")
        metadata: JsonObject = {} if end.outcome == RunStatus.COMPLETED else {"partial": True}
        for message in self._speech.unfinished():
            self._buffer.cause("transcript", [transcript_item(message, self._references, metadata)])
            self._references = []
        diagnostics = self.diagnose()
        told: JsonObject = {"diagnostics": diagnostics} if diagnostics else {}
        self._append_host(HostEventType.ATTEMPT_ENDED, _end_facts(end) | told | (facts or {}))
        self._buffer.batch.end = end
        await self._buffer.commit()
        self.end = end


def _result_scope(opened: OpenAttempt) -> ResultScope:
    snapshot = opened.run.authorization or {}
    context = snapshot.get("state_context")
    if not isinstance(context, dict) or not isinstance(context.get("scope_keys"), dict):
        return ResultScope({}, "", f"{opened.run.run_id}-{opened.attempt}")
    return ResultScope(
        context["scope_keys"],  # type: ignore[arg-type]
        str(context["binding_identity"]),
        f"{opened.run.run_id}-{opened.attempt}",
    )


def _reported_end(payload: RunFailedData) -> AttemptEnd:
    is_cancel = payload.code == RunFailureCode.CANCELLED
    outcome = RunStatus.CANCELLED if is_cancel else RunStatus.FAILED
    return AttemptEnd(outcome.value, payload.code, payload.error[:REASON_CHARACTERS], payload.retryable)


def _protocol_end(reason: str) -> AttemptEnd:
    return AttemptEnd(RunStatus.FAILED.value, RunFailureCode.RUNNER_PROTOCOL.value, reason)


def _end_facts(end: AttemptEnd) -> JsonObject:
    facts: JsonObject = {"outcome": end.outcome, "code": end.code, "reason": end.reason}
    if end.outcome == RunStatus.FAILED:
        facts["retryable"] = end.retryable
    return {key: value for key, value in facts.items() if value is not None}


def _digest_of(artifact: JsonObject) -> str | None:
    sha256 = artifact.get("sha256")
    return sha256 if isinstance(sha256, str) else None
