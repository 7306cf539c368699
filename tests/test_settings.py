from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from runhost.settings import Settings

URL = "postgresql+asyncpg://user:canary@localhost/runhost"


@pytest.fixture(autouse=True)
def _database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNHOST_DATABASE_URL", URL)


def read() -> Settings:
    return Settings()  # pyright: ignore[reportCallIssue]


def test_database_has_no_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUNHOST_DATABASE_URL")

    with pytest.raises(ValidationError, match="database_url"):
        read()


@pytest.mark.parametrize("scheme", ["postgresql+asyncpg", "postgresql", "postgres"])
def test_database_url_gets_our_driver(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("RUNHOST_DATABASE_URL", URL.replace("postgresql+asyncpg", scheme))

    assert read().database_url.get_secret_value() == URL


@pytest.mark.parametrize("url", ["mysql://u:canary@h/d", "canary"], ids=["other", "none"])
def test_wrong_database_url_is_refused_unquoted(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("RUNHOST_DATABASE_URL", url)

    with pytest.raises(ValidationError, match="must begin with") as refusal:
        read()

    assert "canary" not in str(refusal.value)


def test_secrets_are_not_shown() -> None:
    assert "canary" not in repr(read())


@pytest.mark.parametrize(("text", "seconds"), [("2.5", 2.5), ("PT20S", 20), ("00:01:00", 60)])
def test_durations_are_seconds_or_iso(monkeypatch: pytest.MonkeyPatch, text: str, seconds: float) -> None:
    monkeypatch.setenv("RUNHOST_GRACEFUL_SHUTDOWN", text)

    assert read().graceful_shutdown == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GRACEFUL_SHUTDOWN", "-1"),
        ("GRACEFUL_SHUTDOWN", "nan"),
        ("HEARTBEAT_INTERVAL", "0"),
        ("API_PORT", "70000"),
        ("DATABASE_POOL_SIZE", "0"),
        ("LOG_FORMAT", "xml"),
    ],
)
def test_values_out_of_range_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"RUNHOST_{name}", value)

    with pytest.raises(ValidationError, match=name.lower()):
        read()


def test_runner_paths_are_separated_as_in_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNHOST_RUNNER_PATHS", "/one:/two:")

    assert read().runner_paths == [Path("/one"), Path("/two")]


def test_every_setting_explains_itself() -> None:
    assert all(field.description for field in Settings.model_fields.values())
