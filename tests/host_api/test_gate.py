"""The gate: who passes, what is refused, and what the audit tells of it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from host_api.audit import Access
from host_api.authorization import Revocation
from host_api.definition import Call, MethodDefinition
from host_api.errors import HostCallError
from host_api.gate import MethodsIncomplete, method_table
from host_api.limits import CallLimits
from host_api.requirements import Granted, StateScopeOpen
from runhost.protocol import JsonObject, Message
from runhost.protocol.host_api import (
    HOST_METHODS,
    Done,
    ModelAnswer,
    ModelStreamEvent,
    StateKeys,
    StateValue,
)
from stores.tables import agent_run
from tests.eventually import eventually
from tests.host_api.conftest import GrantedRun, NewRun
from tests.host_api.gates import define, definitions, open_gate

INVOKE = Granted("model", "llm_model_uuid", frozenset({"invoke"}))
CALLS: dict[str, Any] = {
    "state_get": {"scope": "actor", "key": "k"},
    "state_list": {"scope": "actor"},
    "history_page": {},
}
PROMPT = {"llm_model_uuid": "m1", "messages": [{"role": "user", "content": "hi"}]}


async def revoke(run: GrantedRun, *taken: Revocation) -> None:
    async with run.host.engine.begin() as connection:
        await connection.execute(
            update(agent_run)
            .where(agent_run.c.run_id == run.run_id)
            .values(revocations=[revocation.model_dump(mode="json") for revocation in taken])
        )


async def refusal(gate: Any, run: GrantedRun, method: str = "state_set", **params: Any) -> HostCallError:
    with pytest.raises(HostCallError) as caught:
        await gate.api.call(run.credentials, method, params)
    return caught.value


class TestMethods:
    def test_gate_does_not_open_without_a_method_of_the_protocol(self) -> None:
        incomplete = [definition for definition in definitions() if definition.name != "state_get"]
        with pytest.raises(MethodsIncomplete, match="state_get"):
            method_table(incomplete)

    def test_gate_does_not_open_with_a_method_that_declares_no_requirement(self) -> None:
        careless = MethodDefinition("state_get", None, define("state_get").run)  # type: ignore[arg-type]
        with pytest.raises(MethodsIncomplete, match="state_get declares no requirement"):
            method_table(definitions(careless))

    def test_gate_does_not_open_with_a_method_that_is_built_twice(self) -> None:
        with pytest.raises(MethodsIncomplete, match="twice"):
            method_table([*definitions(), define("state_get")])

    def test_the_methods_that_are_shipped_are_those_of_the_protocol(self) -> None:
        from host_api.methods import ALL_METHODS

        assert method_table(ALL_METHODS).keys() == HOST_METHODS.keys()


class TestCredentials:
    """H-A1, H-A2, PM-4, PM-5, PM-6: one answer to all of them."""

    @pytest.fixture
    async def others(self, new_run: NewRun) -> GrantedRun:
        return await new_run(conversation_id="c2")

    async def test_right_credentials_pass(self, run: GrantedRun) -> None:
        async with open_gate(run.services) as gate:
            assert await gate.api.call(run.credentials, "get_langbot_version", {}) == {}

    async def test_whatever_is_wrong_reads_the_same(self, run: GrantedRun, others: GrantedRun) -> None:
        right = run.credentials
        wrong = {
            "no token": replace(right, token=""),
            "unknown token": replace(right, token="x" * 43),
            "token of another run": replace(right, token=others.token),
            "another run id": replace(right, run_id=str(others.run_id)),
            "no run id": replace(right, run_id=""),
            "no identity": replace(right, plugin_identity=None),
            "wrong identity": replace(right, plugin_identity="acme/other"),
        }
        async with open_gate(run.services) as gate:
            answers = set()
            for credentials in wrong.values():
                for method in ("state_set", "no_such_method"):
                    with pytest.raises(HostCallError) as caught:
                        await gate.api.call(credentials, method, {"scope": "no scope"})
                    answers.add((type(caught.value), caught.value.as_error().model_dump_json()))
            assert len(answers) == 1
            assert await gate.results() == ["unauthorized"] * 2 * len(wrong)

    async def test_older_attempt_is_refused(self, run: GrantedRun) -> None:
        """INV-5, PM-4."""
        newer = await run.next_attempt()
        async with open_gate(run.services) as gate:
            assert (await refusal(gate, run)).code == "unauthorized"
            await gate.api.call(newer.credentials, "get_langbot_version", {})

    async def test_ended_run_is_refused(self, run: GrantedRun) -> None:
        """PM-4."""
        async with open_gate(run.services) as gate:
            await gate.api.call(run.credentials, "get_langbot_version", {})
            await run.end()
            assert (await refusal(gate, run, "get_langbot_version")).code == "unauthorized"


class TestRequests:
    async def test_unknown_method_is_not_found(self, run: GrantedRun) -> None:
        async with open_gate(run.services) as gate:
            error = await refusal(gate, run, "no_such_method")
            assert (error.code, "no_such_method" in error.message) == ("not_found", True)

    @pytest.mark.parametrize(
        ("params", "named"),
        [
            ({"scope": "conversation"}, "key"),
            ({"scope": "planet", "key": "k", "value": 1}, "scope"),
            ({"scope": "actor", "key": "k", "value": 1, "more": 1}, "more"),
            ({"scope": "actor", "key": "", "value": 1}, "key"),
        ],
    )
    async def test_bad_parameter_is_named(self, run: GrantedRun, params: dict[str, Any], named: str) -> None:
        async with open_gate(run.services) as gate:
            error = await refusal(gate, run, **params)
            assert error.code == "invalid_argument"
            assert named in error.message

    @pytest.mark.parametrize("body", [b"{", b"[]", b'"text"', b"\xff", b"{" * 10_000])
    async def test_body_that_is_no_object_is_an_invalid_argument(self, run: GrantedRun, body: bytes) -> None:
        async with open_gate(run.services) as gate:
            with pytest.raises(HostCallError) as caught:
                await gate.api.call(run.credentials, "state_set", body)
            assert caught.value.code == "invalid_argument"

    async def test_request_over_its_limit_is_too_large(self, run: GrantedRun) -> None:
        """D-16."""
        async with open_gate(run.services) as gate:
            error = await refusal(gate, run, scope="actor", key="k", value="x" * 1024 * 1024)
            assert error.code == "payload_too_large"

    async def test_answer_over_the_limit_is_too_large(self, run: GrantedRun) -> None:
        """D-16."""

        async def much(call: Call, params: Any) -> StateValue:
            return StateValue(value="x" * 14 * 1024 * 1024)

        async with open_gate(run.services, define("state_get", much)) as gate:
            assert (await refusal(gate, run, "state_get", scope="actor", key="k")).code == "payload_too_large"

    async def test_sizes_are_for_the_operator_to_choose(self, run: GrantedRun) -> None:
        """D-16: all configurable; what carries values keeps its own limit."""

        async def some(call: Call, params: Any) -> StateValue:
            return StateValue(value="x" * 10_000)

        limits = CallLimits(request_bytes=1_000, response_bytes=2_000)
        async with open_gate(run.services, define("state_get", some), limits=limits) as gate:
            sent = await refusal(gate, run, scope="actor", key="k", value="x" * 1_000)
            assert (sent.code, "at most 1000" in sent.message) == ("payload_too_large", True)
            assert (await refusal(gate, run, "state_get", scope="actor", key="k")).code == "payload_too_large"
            value: JsonObject = {"key": "k", "value_base64": "A" * 10_000}
            await gate.api.call(run.credentials, "set_plugin_storage", value)

    async def test_flood_is_slowed_down_for_its_own_run_only(self, run: GrantedRun, new_run: NewRun) -> None:
        """H-A8, D-16."""
        other = await new_run(conversation_id="c2")
        async with open_gate(run.services, limits=CallLimits(calls_per_second=0.01, burst=3)) as gate:
            for _ in range(3):
                await gate.api.call(run.credentials, "get_langbot_version", {})
            error = await refusal(gate, run, "get_langbot_version")
            assert (error.code, error.retryable) == ("rate_limited", True)
            assert error.retry_after_seconds is not None
            assert error.retry_after_seconds > 1
            await gate.api.call(other.credentials, "get_langbot_version", {})
            assert await gate.results() == ["ok", "ok", "ok", "rate_limited", "ok"]

    async def test_bug_in_a_method_says_nothing_of_itself(self, run: GrantedRun) -> None:
        async def broken(call: Call, params: Any) -> Done:
            raise RuntimeError("secret of a user")

        async with open_gate(run.services, define("state_set", broken)) as gate:
            error = await refusal(gate, run, scope="actor", key="k", value=1)
            assert error.code == "runtime_error"
            assert "secret" not in error.message


class TestGrants:
    async def test_what_is_not_granted_and_what_does_not_exist_read_the_same(self, run: GrantedRun) -> None:
        """H-A4, PM-1."""
        async with open_gate(run.services, define("invoke_llm", requirement=INVOKE)) as gate:
            await gate.api.call(run.credentials, "invoke_llm", PROMPT)
            error = await refusal(gate, run, "invoke_llm", **PROMPT | {"llm_model_uuid": "m2"})
            assert error.code == "unauthorized"
            row = (await gate.accesses())[-1]
            assert (row["resource"], row["scope"], row["result"]) == ("model:m2", "invoke", "unauthorized")

    async def test_revoked_grant_is_refused_with_the_next_call(self, run: GrantedRun) -> None:
        """D-15, INV-10."""
        async with open_gate(run.services, define("invoke_llm", requirement=INVOKE)) as gate:
            await gate.api.call(run.credentials, "invoke_llm", PROMPT)
            await revoke(run, Revocation(kind="model", id="m1"))
            assert (await refusal(gate, run, "invoke_llm", **PROMPT)).code == "unauthorized"

    async def test_grant_whose_name_the_database_escapes_is_revoked_too(self, run: GrantedRun) -> None:
        """D-31."""
        odd = "\ufdd0m"
        snapshot = run.authorization.model_dump(mode="json")
        snapshot["resources"]["models"][0]["model_id"] = odd
        async with run.host.engine.begin() as connection:
            await connection.execute(
                update(agent_run).where(agent_run.c.run_id == run.run_id).values(authorization=snapshot)
            )
        async with open_gate(run.services, define("invoke_llm", requirement=INVOKE)) as gate:
            await gate.api.call(run.credentials, "invoke_llm", PROMPT | {"llm_model_uuid": odd})
            await revoke(run, Revocation(kind="model", id=odd))
            assert (await refusal(gate, run, "invoke_llm", **PROMPT | {"llm_model_uuid": odd})).code == "unauthorized"

    async def test_run_whose_grants_are_all_revoked_may_nothing(self, run: GrantedRun) -> None:
        async with open_gate(run.services, define("state_get", requirement=StateScopeOpen())) as gate:
            await gate.api.call(run.credentials, "state_get", {"scope": "actor", "key": "k"})
            await revoke(run, Revocation(kind="run"))
            assert (await refusal(gate, run, "state_get", scope="actor", key="k")).code == "unauthorized"

    async def test_revocation_ends_a_call_that_is_under_way(self, run: GrantedRun) -> None:
        """D-15: within 1 s, which is two looks of half a second."""
        began, ended = asyncio.Event(), asyncio.Event()

        async def long(call: Call, params: Any) -> ModelAnswer:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return ModelAnswer(message=Message(role="assistant", content=""))

        async with open_gate(run.services, define("invoke_llm", long, INVOKE)) as gate:
            calling = asyncio.create_task(refusal(gate, run, "invoke_llm", **PROMPT))
            await began.wait()
            await revoke(run, Revocation(kind="model", id="m1"))
            assert (await calling).code == "unauthorized"
            assert ended.is_set()

    async def test_revocation_ends_a_stream_that_never_pauses(self, run: GrantedRun) -> None:
        async def endless(call: Call, params: Any) -> Any:
            while True:
                yield ModelStreamEvent()
                await asyncio.sleep(0)

        stream = Granted("model", "llm_model_uuid", frozenset({"stream"}))
        async with open_gate(run.services, define("invoke_llm_stream", endless, stream)) as gate:
            events = gate.api.stream(run.credentials, "invoke_llm_stream", PROMPT)
            assert await anext(events) == {"chunk": None, "usage": None}
            await revoke(run, Revocation(kind="model", id="m1"))
            with pytest.raises(HostCallError) as caught:
                async for _ in events:
                    pass
            assert caught.value.code == "unauthorized"


class TestFencedMethods:
    """Methods whose statements check the fence may be called on a session that was read half a second ago."""

    @pytest.fixture
    async def gate(self, run: GrantedRun) -> AsyncIterator[Any]:
        from host_api.methods import history, state

        async with open_gate(run.services, state.state_get, state.state_list, history.history_page) as gate:
            for method, params in CALLS.items():
                await gate.api.call(run.credentials, method, params)
            yield gate

    @pytest.mark.parametrize("method", ["state_get", "state_list", "history_page"])
    async def test_ended_run_and_older_attempt_are_refused_at_once(
        self, gate: Any, run: GrantedRun, method: str
    ) -> None:
        """PM-4, INV-5."""
        newer = await run.next_attempt()
        assert (await refusal(gate, run, method, **CALLS[method])).code == "unauthorized"
        await gate.api.call(newer.credentials, method, CALLS[method])
        await run.end()
        assert (await refusal(gate, newer, method, **CALLS[method])).code == "unauthorized"

    @pytest.mark.parametrize("method", ["state_get", "state_list", "history_page"])
    async def test_revocation_is_seen_soon(self, gate: Any, run: GrantedRun, method: str) -> None:
        """D-15: half a second, of the second that it may take."""
        await revoke(run, Revocation(kind="run"))

        async def is_refused() -> bool:
            try:
                await gate.api.call(run.credentials, method, CALLS[method])
            except HostCallError as error:
                return error.code == "unauthorized"
            return False

        await eventually(is_refused)


class TestDeadline:
    async def test_call_ends_with_the_deadline_of_the_run(self, run: GrantedRun) -> None:
        """P-T1, H-A8."""

        async def for_ever(call: Call, params: Any) -> StateKeys:
            await asyncio.Event().wait()
            return StateKeys()

        soon = datetime.now(UTC) + timedelta(seconds=0.2)
        async with run.host.engine.begin() as connection:
            await connection.execute(update(agent_run).where(agent_run.c.run_id == run.run_id).values(deadline_at=soon))
        async with open_gate(run.services, define("state_list", for_ever)) as gate:
            assert (await refusal(gate, run, "state_list", scope="actor")).code == "deadline_exceeded"
            assert (await refusal(gate, run, "state_list", scope="actor")).code == "deadline_exceeded"
            assert await gate.results() == ["deadline_exceeded"] * 2

    async def test_timeout_of_a_method_itself_is_no_deadline(self, run: GrantedRun) -> None:
        async def slow(call: Call, params: Any) -> StateKeys:
            raise TimeoutError

        async with open_gate(run.services, define("state_list", slow)) as gate:
            assert (await refusal(gate, run, "state_list", scope="actor")).code == "runtime_error"


class TestAudit:
    async def test_row_tells_run_runner_action_resource_scope_result_and_duration(self, run: GrantedRun) -> None:
        """PROTOCOL 15."""
        async with open_gate(run.services, define("state_get", requirement=StateScopeOpen())) as gate:
            await gate.api.call(run.credentials, "state_get", {"scope": "actor", "key": "k\x00"[:1]})
            (row,) = await gate.accesses()
        assert row["duration_us"] > 0
        named = ("workspace_id", "run_id", "attempt", "runner_id", "action", "resource", "scope", "result")
        assert [row[name] for name in named] == [
            run.row.workspace_id,
            run.run_id,
            1,
            run.row.runner_id,
            "state_get",
            "k",
            "actor",
            "ok",
        ]

    async def test_call_that_its_caller_gives_up_is_told(self, run: GrantedRun) -> None:
        began = asyncio.Event()

        async def long(call: Call, params: Any) -> StateKeys:
            began.set()
            await asyncio.Event().wait()
            return StateKeys()

        async with open_gate(run.services, define("state_list", long)) as gate:
            calling = asyncio.create_task(gate.api.call(run.credentials, "state_list", {"scope": "actor"}))
            await began.wait()
            calling.cancel()
            await asyncio.wait([calling])
            assert await gate.results() == ["cancelled"]

    async def test_leaving_the_audit_writes_what_waits(self, run: GrantedRun) -> None:
        async with open_gate(run.services) as gate:
            for _ in range(20):
                await gate.api.call(run.credentials, "get_langbot_version", {})
        assert len(await gate.accesses()) == 20

    @pytest.mark.parametrize("method", ["\x00", "\ud800" * 100, "\ufdd0", "x" * 10_000, ""])
    async def test_method_of_any_name_is_told_and_keeps_no_other_row_waiting(
        self, run: GrantedRun, method: str
    ) -> None:
        """D-31: also from nobody, who must not be able to stop the audit of all."""
        async with open_gate(run.services) as gate:
            assert (await refusal(gate, run, method)).code == "not_found"
            with pytest.raises(HostCallError):
                await gate.api.call(replace(run.credentials, token="unknown"), method, {})
            await gate.api.call(run.credentials, "get_langbot_version", {})
            rows = await gate.accesses()
        assert [row["result"] for row in rows] == ["not_found", "unauthorized", "ok"]
        assert {row["resource"] for row in rows[:2]} == {method[:500]}

    async def test_row_that_the_database_refuses_is_left_out_alone(self, run: GrantedRun) -> None:
        """A bug in one row must not keep calls waiting for ever."""
        good = Access(run.row.workspace_id, run.run_id, 1, "r", "state_get", None, None, "ok", 1)
        async with open_gate(run.services) as gate:
            for row in (good, replace(good, action="x" * 1_000), good):
                await gate.audit.note(row)
            assert await gate.results() == ["ok", "ok"]
            await gate.audit.note(good)
            assert await gate.results() == ["ok", "ok", "ok"]
