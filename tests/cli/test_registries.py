"""The commands for models, tools, skills and files."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_runs import page
from tests.client.stub import TIME, HostStub, answer, problem

SECRET = "sk-very-secret"
TIMES = {"created_at": TIME, "updated_at": TIME}
MODEL = TIMES | {
    "model_id": "m1",
    "name": "One",
    "model_type": "llm",
    "provider": "openai",
    "base_url": "https://models.example/v1",
    "model_name": "one-large",
    "has_api_key": True,
    "context_window_tokens": 8192,
    "default_args": {"temperature": 0},
    "timeout_seconds": 120.0,
    "enabled": True,
}
SERVER = TIMES | {
    "server_id": "web",
    "transport": "streamable_http",
    "url": "https://tools.example/mcp",
    "header_names": ["Authorization"],
    "enabled": True,
    "is_stale": True,
    "last_error": "Nobody answers.",
}
TOOL = {"tool_name": "web__search", "server_id": "web", "remote_name": "search", "enabled": True, "human_desc": "Finds"}
SKILL = TIMES | {"skill_name": "look", "display_name": "Look", "description": "Looks.", "sha256": "ab" * 32}
FILE = TIMES | {"file_key": "k", "file_name": "a.csv", "mime_type": "text/csv", "size_bytes": 3, "sha256": "cd" * 32}


class TestModels:
    async def test_model_is_put_from_options_with_the_key_of_a_variable(self, cli: Cli, host_stub: HostStub) -> None:
        host_stub.play(answer(200, MODEL))
        options = ("--base-url", "https://models.example/v1", "--model-name", "one-large", "--context-window", "8192")
        more = ("--default-args", '{"temperature": 0}', "--timeout", "9.5", "--api-key-env", "MY_KEY", "--disabled")

        outcome = await cli("models", "put", "m1", *options, *more, MY_KEY=SECRET)

        assert (host_stub.requests[0].method, host_stub.requests[0].path) == ("PUT", "/v1/models/m1")
        assert host_stub.requests[0].json == {
            "base_url": "https://models.example/v1",
            "model_name": "one-large",
            "context_window_tokens": 8192,
            "default_args": {"temperature": 0},
            "timeout_seconds": 9.5,
            "enabled": False,
            "api_key": SECRET,
        }
        assert "Model m1 is one-large at https://models.example/v1, with a key." in outcome.stderr
        assert SECRET not in outcome.stdout + outcome.stderr

    @pytest.mark.parametrize(
        ("option", "stdin", "sent"),
        [("--api-key-stdin", f"{SECRET}\n", {"api_key": SECRET}), ("--no-api-key", None, {"api_key": None})],
    )
    async def test_key_comes_from_standard_input_or_goes(
        self, cli: Cli, host_stub: HostStub, option: str, stdin: str | None, sent: dict[str, Any]
    ) -> None:
        host_stub.play(answer(200, MODEL))

        outcome = await cli("models", "put", "m1", "--base-url", "https://x.example", option, "--json", stdin=stdin)

        assert host_stub.requests[0].json == {"base_url": "https://x.example"} | sent
        assert outcome.documents[0]["model_id"] == "m1"

    async def test_models_are_listed_shown_and_deleted(self, cli: Cli, host_stub: HostStub) -> None:
        host_stub.play(page(MODEL), page(MODEL), answer(200, MODEL), answer(200, MODEL), answer(204, None), page())

        listed = await cli("models", "list")
        assert listed.stdout.splitlines()[1].split()[:3] == ["m1", "llm", "one-large"]
        assert (await cli("models", "list", "--json")).documents[0]["has_api_key"] is True
        shown = (await cli("models", "show", "m1")).stdout
        assert '{"temperature": 0}' in shown
        assert (await cli("models", "show", "m1", "--json")).documents[0]["name"] == "One"
        assert "Model m1 is deleted." in (await cli("models", "delete", "m1")).stderr
        assert "`runhost models put` makes one" in (await cli("models", "list")).stderr


class TestTools:
    async def test_server_is_put_and_asked_for_its_tools(self, cli: Cli, host_stub: HostStub) -> None:
        host_stub.play(answer(200, SERVER), answer(200, {"items": [TOOL]}))
        secrets = ("--bearer-env", "TOKEN", "--header", "X-Key=OTHER")

        outcome = await cli(
            "tools", "servers", "put", "web", "--url", "https://tools.example/mcp", *secrets, TOKEN=SECRET, OTHER="o"
        )

        put, refresh = host_stub.requests
        assert put.json == {
            "transport": "streamable_http",
            "url": "https://tools.example/mcp",
            "headers": {"Authorization": f"Bearer {SECRET}", "X-Key": "o"},
        }
        assert (refresh.method, refresh.path) == ("POST", "/v1/tool-servers/web/refresh")
        assert "It offers 1 tools: web__search." in outcome.stderr
        assert SECRET not in outcome.stderr

    async def test_program_stands_behind_two_dashes(self, cli: Cli, host_stub: HostStub) -> None:
        host_stub.play(answer(200, SERVER))

        options = ("--env", "TZ", "--env", "A=B", "--no-refresh", "--json")

        outcome = await cli("tools", "servers", "put", "t", *options, "--", "clock", "-x", TZ="UTC", B=SECRET)

        expected = {"transport": "stdio", "command": ["clock", "-x"], "env": {"TZ": "UTC", "A": SECRET}}
        assert [request.json for request in host_stub.requests] == [expected]
        assert outcome.documents[0]["server_id"] == "web"

    async def test_d_19_server_that_does_not_answer_is_told(self, cli: Cli, host_stub: HostStub) -> None:
        host_stub.play(problem(502, "runtime_error", detail="Tool server 'web' did not tell its tools."))

        outcome = await cli("tools", "servers", "refresh", "web")

        assert (outcome.code, "did not tell its tools" in outcome.stderr) == (1, True)

    async def test_servers_and_tools_are_listed_shown_and_deleted(self, cli: Cli, host_stub: HostStub) -> None:
        tool = TOOL | {"parameters": {"type": "object", "title": "x" * 400}}
        host_stub.play(
            page(SERVER), answer(200, SERVER), answer(204, None), page(TOOL), answer(200, tool), page(), page()
        )

        listed = (await cli("tools", "servers", "list")).stdout.splitlines()[1]
        assert listed.split()[:4] == ["web", "https://tools.example/mcp", "True", "yes"]
        assert listed.endswith("Nobody answers.")
        assert "Authorization" in (await cli("tools", "servers", "show", "web")).stdout
        assert (await cli("tools", "servers", "delete", "web", "--json")).documents == [{"deleted": True}]
        assert "web__search" in (await cli("tools", "list", "--server", "web")).stdout
        assert host_stub.requests[3].path == "/v1/tools?limit=200&server_id=web"
        assert "x" * 400 in "".join((await cli("tools", "show", "web__search")).stdout.split())
        assert "registers one" in (await cli("tools", "servers", "list")).stderr
        assert "registers a server" in (await cli("tools", "list")).stderr


class TestSkills:
    async def test_skill_is_put_from_a_file_and_shown_as_it_is(
        self, cli: Cli, host_stub: HostStub, tmp_path: Path
    ) -> None:
        text = "# Look\n\nTwice.\n"
        (tmp_path / "SKILL.md").write_text(text)
        host_stub.play(answer(200, SKILL | {"instructions": text}))

        await cli("skills", "put", "look", str(tmp_path / "SKILL.md"), "--description", "Looks.")
        shown = await cli("skills", "show", "look")

        assert host_stub.requests[0].json == {"instructions": text, "display_name": None, "description": "Looks."}
        assert shown.stdout == f"{text}\n"
        assert "Look: Looks." in shown.stderr

    async def test_skills_are_listed_and_deleted(self, cli: Cli, host_stub: HostStub) -> None:
        host_stub.play(page(SKILL), answer(204, None), page())

        assert (await cli("skills", "list")).stdout.splitlines()[1].split()[:2] == ["look", "Look"]
        assert "Skill look is deleted." in (await cli("skills", "delete", "look")).stderr
        assert "`runhost skills put` makes one" in (await cli("skills", "list")).stderr


class TestFiles:
    async def test_file_is_put_with_its_name_and_type(self, cli: Cli, host_stub: HostStub, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_bytes(b"a\0\xff")
        host_stub.play(answer(200, FILE))

        outcome = await cli("files", "put", "rules/k", str(tmp_path / "a.csv"))

        (request,) = host_stub.requests
        assert (request.method, request.path) == ("PUT", "/v1/files/rules%2Fk?file_name=a.csv")
        assert (request.body, request.headers["content-type"]) == (b"a\0\xff", "text/csv")
        assert "File k has 3 bytes of text/csv." in outcome.stderr

    async def test_bytes_are_written_to_a_file(self, cli: Cli, host_stub: HostStub, tmp_path: Path) -> None:
        host_stub.play(answer(200, {"x": 1}))

        await cli("files", "get", "k", "--output", str(tmp_path / "out"))

        assert json.loads((tmp_path / "out").read_bytes()) == {"x": 1}
        assert host_stub.requests[0].path == "/v1/files/k/content"
        assert json.loads((await cli("files", "get", "k")).stdout) == {"x": 1}
        refused = await cli("files", "get", "k", "--output", str(tmp_path / "no" / "folder"))
        assert (refused.code, "cannot be written" in refused.stderr) == (1, True)

    async def test_files_are_listed_shown_and_deleted(self, cli: Cli, host_stub: HostStub) -> None:
        host_stub.play(page(FILE), answer(200, FILE), answer(204, None), page())

        assert (await cli("files", "list")).stdout.splitlines()[1].split()[:4] == ["k", "a.csv", "text/csv", "3"]
        assert "cd" * 32 in (await cli("files", "show", "k")).stdout
        assert "File k is deleted." in (await cli("files", "delete", "k")).stderr
        assert "`runhost files put` makes one" in (await cli("files", "list")).stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("models", "put", "m"), "say where it is"),
        (("models", "put", "m", "--base-url", "https://x", "--type", "oracle"), "model_type"),
        (("models", "put", "m", "--base-url", "https://x", "--api-key-env", "UNSET"), "'UNSET' is not set"),
        (("models", "put", "m", "--base-url", "https://x", "--api-key-stdin"), "standard input is empty"),
        (("models", "put", "m", "--api-key-stdin", "--no-api-key"), "at most"),
        (("models", "put", "m", "--api-key-stdin", "--file", "-"), "cannot be both"),
        (("tools", "servers", "put", "s"), "say where it is"),
        (("tools", "servers", "put", "s", "--url", "https://x", "--", "program"), "not both"),
        (("tools", "servers", "put", "s", "--url", "https://x", "--header", "A=UNSET"), "'UNSET' is not set"),
        (("skills", "put", "k", "/nowhere"), "No such file"),
        (("skills", "put", "k", "-"), "instructions"),
        (("files", "put", "k", "/nowhere"), "No such file"),
    ],
)
async def test_wrong_input_is_told_before_anything_is_sent(
    cli: Cli, host_stub: HostStub, arguments: tuple[str, ...], told: str
) -> None:
    outcome = await cli(*arguments, stdin="")

    assert outcome.code == 2
    assert told in " ".join(outcome.stderr.split())
    assert host_stub.requests == []
