"""Fixtures for all tests: real Postgres and Temporal, started when the first test asks for them."""

pytest_plugins = [
    "tests.fixtures.session",
    "tests.fixtures.databases",
    "tests.fixtures.temporal",
    "tests.fixtures.embedded",
    "tests.fixtures.openai_stub",
    "tests.fixtures.host",
    "tests.fixtures.live_host",
]
