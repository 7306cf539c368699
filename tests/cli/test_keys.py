import re

import pytest

from runhost.cli.keys import DEFAULT_SCOPES
from tests.cli.conftest import Cli, Outcome, run_cli


@pytest.fixture
def keys(database_url: str) -> Cli:
    async def run(*arguments: str, **more: str | None) -> Outcome:
        return await run_cli("keys", *arguments, env={"RUNHOST_DATABASE_URL": database_url} | more)

    return run


async def found(database_url: str, secret: str) -> object:
    from stores.engine import build_engine
    from stores.keys import KeyStore

    engine = build_engine(database_url, pool_size=1, application_name="tests")
    async with engine.connect() as connection:
        key = await KeyStore(connection).find(secret)
    await engine.dispose()
    return key and (key.workspace_id, key.name, key.scopes)


async def test_secret_is_shown_once_and_opens(keys: Cli, database_url: str) -> None:
    created = await keys("create", "my-plugin", "--workspace", "w1")

    assert created.code == 0
    assert re.fullmatch(r"rh_[\w-]{43}\n", created.stdout)
    secret = created.stdout.strip()
    assert secret not in created.stderr
    assert await found(database_url, secret) == ("w1", "my-plugin", DEFAULT_SCOPES)
    listed = await keys("list")
    assert "my-plugin" in listed.stdout
    assert secret not in listed.stdout


async def test_key_is_listed_and_revoked(keys: Cli, database_url: str) -> None:
    scopes = ("--scope", "runs:read", "--scope", "runs:read", "--scope", "runs:write")
    [made] = (await keys("create", "ci", *scopes, "--expires-in-days", "30", "--json")).documents
    await keys("create", "other", "--workspace", "w2")

    assert made["scopes"] == ["runs:read", "runs:write"]
    assert (made["workspace_id"], made["state"], made["revoked_at"]) == ("default", "valid", None)
    assert made["expires_at"] > made["created_at"]
    [listed] = (await keys("list", "--workspace", "default", "--json")).documents
    assert listed == {name: value for name, value in made.items() if name != "key"}

    revoked = await keys("revoke", made["key_id"])
    again = await keys("revoke", made["key_id"], "--json")

    assert (revoked.code, again.code) == (0, 1)
    assert "no key" in again.stderr
    assert await found(database_url, made["key"]) is None
    assert "revoked" in (await keys("list")).stdout


async def test_all_scopes_are_those_of_the_api(keys: Cli) -> None:
    from api.auth import Scope

    [made] = (await keys("create", "admin", "--all-scopes", "--json")).documents

    assert made["scopes"] == [scope.value for scope in Scope]
    assert set(DEFAULT_SCOPES) < set(made["scopes"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("create", "x", "--scope", "everything"), "'everything' is no scope"),
        (("create", "x", "--expires-in-days", "0"), "expires-in-days"),
        (("revoke", "nonsense"), "KEY_ID"),
        (("create",), "NAME"),
    ],
)
async def test_wrong_usage_is_told(keys: Cli, arguments: tuple[str, ...], told: str) -> None:
    outcome = await keys(*arguments)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert told in outcome.stderr


async def test_missing_tables_name_the_migration(empty_database_url: str) -> None:
    outcome = await run_cli("keys", "create", "x", env={"RUNHOST_DATABASE_URL": empty_database_url})

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "`runhost migrate upgrade`" in outcome.stderr


@pytest.mark.parametrize("wrong", ["port", "database", "role"])
async def test_unreachable_database_ends_with_3_and_no_password(database_url: str, wrong: str) -> None:
    before, _, after = database_url.partition("@")
    url = {
        "port": "postgresql://u:canary@127.0.0.1:1/d",
        "database": database_url + "-not",
        "role": f"postgresql://nobody:canary@{after}",
    }[wrong]

    outcome = await run_cli("keys", "list", env={"RUNHOST_DATABASE_URL": url})

    assert (outcome.code, outcome.stdout) == (3, "")
    assert "RUNHOST_DATABASE_URL" in outcome.stderr
    assert "canary" not in outcome.stderr
    assert before.rpartition(":")[2] not in outcome.stderr


async def test_missing_setting_ends_with_2(keys: Cli) -> None:
    outcome = await keys("list", RUNHOST_DATABASE_URL=None)

    assert outcome.code == 2
    assert "RUNHOST_DATABASE_URL" in outcome.stderr
