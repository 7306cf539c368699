"""The Temporal client, built the same way by API, worker, tests and replayer."""

from temporalio.client import Client, TLSConfig
from temporalio.contrib.pydantic import pydantic_data_converter

DATA_CONVERTER = pydantic_data_converter


async def connect(
    address: str,
    namespace: str = "default",
    *,
    api_key: str | None = None,
    tls: bool = False,
    identity: str | None = None,
    lazy: bool = False,
) -> Client:
    """Return a client; with ``lazy``, one that connects with its first call.

    Raises:
        RuntimeError: Nothing answers at ``address`` (not raised with ``lazy``).
    """
    return await Client.connect(
        address,
        namespace=namespace,
        api_key=api_key,
        tls=TLSConfig() if tls else False,
        data_converter=DATA_CONVERTER,
        identity=identity,
        lazy=lazy,
    )
