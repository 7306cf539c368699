"""The documentation says what the code does."""

import asyncio
import re
from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import yaml
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from runhost.protocol import ErrorCode, HostEventType, ResultType, RunFailureCode
from runhost.protocol.host_api import HOST_METHODS
from runhost.settings import Settings

if TYPE_CHECKING:
    from temporalio.client import Client

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"
PAGES = sorted([*CHECKOUT.glob("*.md"), *DOCS.rglob("*.md"), *(CHECKOUT / "examples").rglob("*.md")])

LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SETTINGS = re.compile(r"(<!-- settings: [^>]+-->\n)(.*?)(<!-- /settings -->)", re.DOTALL)


def page(name: str) -> str:
    return (CHECKOUT / name).read_text(encoding="utf-8")


def without_blocks(text: str) -> str:
    return BLOCK.sub("", text)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def blocks(text: str, language: str) -> list[str]:
    return [body for found, body in BLOCK.findall(text) if found == language]


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(CHECKOUT)))
def test_relative_links_lead_somewhere(file: Path) -> None:
    broken: list[str] = []
    for target in LINK.findall(without_blocks(file.read_text(encoding="utf-8"))):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        found = file if not path else file.parent / path
        if not found.exists() or (anchor and anchor not in anchors(found.read_text(encoding="utf-8"))):
            broken.append(target)
    assert not broken


def test_readme_is_short() -> None:
    assert len(page("README.md").splitlines()) < 150


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set[Path](), [CHECKOUT / "README.md"]
    while waiting:
        file = waiting.pop()
        if file in reached or file.suffix != ".md":
            continue
        reached.add(file)
        links = (target.partition("#")[0] for target in LINK.findall(without_blocks(file.read_text(encoding="utf-8"))))
        waiting += [(file.parent / path).resolve() for path in links if path and ":" not in path]
    assert {file for file in PAGES if file.is_relative_to(DOCS)} <= reached


def _default(field: FieldInfo) -> str:
    value: Any = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, timedelta):
        return f"`{value.total_seconds():g}`"
    if value is None or value == []:
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def settings_table() -> str:
    rows = [
        f"| `RUNHOST_{name.upper()}` | {_default(field)} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| Variable | Default | Meaning |", "| --- | --- | --- |", *rows, ""])


def test_settings_table_is_that_of_the_code() -> None:
    found = SETTINGS.search(page("docs/operating.md"))
    assert found
    # Where this fails, paste the table that it shows.
    assert found[2] == settings_table()


def operations() -> Iterator[str]:
    from api.app import ApiDependencies, build_app
    from stores.engine import build_engine

    dependencies = ApiDependencies(
        engine=build_engine("postgresql+asyncpg://nobody@nowhere/nothing", pool_size=1, application_name="docs"),
        database_url="",
        # Nothing is opened before the application starts.
        temporal=cast("Client", None),
        task_queue="docs",
        version="0",
    )
    for path, methods in build_app(dependencies).openapi()["paths"].items():
        for method in methods:
            yield f"{method.upper()} {path}"


def test_every_route_is_described_and_every_described_route_exists() -> None:
    described = set(re.findall(r"^\| `((?:GET|POST|PUT|DELETE|PATCH) [^`]+)`", page("docs/api.md"), re.MULTILINE))
    # The methods of the host API are one row here, and have a table of their own.
    existing = {re.sub(r"^POST /v1/host/\w+$", "POST /v1/host/{method}", operation) for operation in operations()}
    assert described == existing


def test_every_method_of_the_host_api_is_described() -> None:
    table = page("docs/runners.md").partition("| Method | Returns | Needs |\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`\w+\(.*?) \|", table, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)\(", row)} == set(HOST_METHODS)


@pytest.mark.parametrize(
    ("codes", "name"),
    [
        (ErrorCode, "docs/api.md"),
        (RunFailureCode, "docs/ledger.md"),
        (HostEventType, "docs/ledger.md"),
        (ResultType, "docs/ledger.md"),
    ],
    ids=["errors", "failures", "host events", "results"],
)
def test_every_code_is_described(codes: type[StrEnum], name: str) -> None:
    text = page(name)
    assert [code.value for code in codes if f"`{code.value}`" not in text] == []


def test_every_scope_is_described() -> None:
    from api.auth import Scope

    assert [scope.value for scope in Scope if f"`{scope.value}`" not in page("docs/api.md")] == []


def test_every_metric_is_described() -> None:
    from api.metrics import Metrics

    exposed = re.findall(r"^# TYPE (\w+) ", Metrics().exposition().decode(), re.MULTILINE)
    metrics = {name for name in exposed if not name.endswith("_created")}
    described = set(re.findall(r"^\| `(runhost_\w+)`", page("docs/operating.md"), re.MULTILINE))
    assert metrics == described


def test_every_decision_stands_in_the_list() -> None:
    records = {file.name for file in (DOCS / "decisions").glob("0*.md")}
    assert set(re.findall(r"\((0\d+[\w-]+\.md)\)", page("docs/decisions/README.md"))) == records
    for name in records:
        text = page(f"docs/decisions/{name}")
        sections = ["## Context", "## Decision", "## Consequences", "## Alternatives", "Kept by:"]
        assert [section for section in sections if section not in text] == [], name


def test_runner_of_the_guide_is_found_and_passes_its_test(tmp_path: Path) -> None:
    from runners.discovery import discover

    text = page("docs/runners.md")
    code, *_, test = blocks(text, "python")
    (tmp_path / "runner.yaml").write_text(blocks(text, "yaml")[0])
    (tmp_path / "runner.py").write_text(code)
    (found,) = (runner for runner in discover([tmp_path], packages=[]))
    assert found.discovery.manifest.id == "plugin:acme/greeter/default"
    greeter = found.code.load(found.discovery.manifest.id)
    scope: dict[str, Any] = {"Greeter": lambda: _made(greeter, found.discovery.manifest)}
    exec(test, scope)  # noqa: S102 - it is our own guide
    scope["test_greets_and_counts"]()


def _made(runner: type[Any], manifest: Any) -> Any:
    instance = runner()
    instance.manifest = manifest
    return instance


@pytest.mark.parametrize("runner", ["scripted", "openai_chat"])
def test_every_option_of_an_official_runner_is_described(runner: str) -> None:
    manifest = yaml.safe_load(page(f"runners/official/{runner}/runner.yaml"))
    options = [item["name"] for item in manifest["spec"]["config"]]
    assert [option for option in options if f"| `{option}` |" not in page("docs/runners.md")] == []


def test_every_step_of_a_script_is_described() -> None:
    from runners.official.scripted.script import UnplayableScript, read_script

    with pytest.raises(UnplayableScript) as refusal:
        read_script({"script": [{"": 0}]})
    steps = str(refusal.value).rpartition("steps are ")[2].split(", ")
    assert "after_end" in steps
    assert [step for step in steps if f'{{"{step}":' not in page("docs/runners.md")] == []


def test_curl_examples_are_valid_json() -> None:
    import json

    bodies = re.findall(r"--json '(.*?)'", page("docs/api.md") + page("README.md"), re.DOTALL)
    assert bodies
    for body in bodies:
        json.loads(body)


async def test_posted_examples_fit_the_models() -> None:
    from api.models import BindingRequest, CancelRequest, RevokeRequest, RunRequest
    from runhost.protocol import AgentConfig, AgentEventEnvelope

    models: dict[str, Any] = {
        "/v1/events": AgentEventEnvelope,
        "/v1/runs/$RUN/cancel": CancelRequest,
        "/v1/runs/$RUN/authorization/revoke": RevokeRequest,
        "/v1/runs": RunRequest,
        "/v1/agents/": AgentConfig,
        "/v1/bindings/": BindingRequest,
    }
    text = await asyncio.to_thread(page, "docs/api.md")
    found = re.findall(r'curl "\$API(/v1/[^"\n]*)"[^\n]*--json \'(.*?)\'\n', text, re.DOTALL)
    assert len(found) >= 5
    for path, body in found:
        model = next(model for start, model in models.items() if path.startswith(start))
        model.model_validate_json(body)
