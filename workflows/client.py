"""The Temporal client, built the same way by API, worker, tests and replayer."""

import dataclasses

from temporalio.api.failure.v1 import Failure
from temporalio.client import Client, TLSConfig
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DefaultFailureConverter, PayloadConverter
from temporalio.exceptions import ApplicationError


class FailureConverter(DefaultFailureConverter):
    """Writes the ends that we mean without a stack trace: it is half of a failed run's history and says nothing.

    Bugs keep theirs. Both carry lines of code at most, never values (INV-9).
    """

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        """Convert an exception into what Temporal keeps of it."""
        super().to_failure(exception, payload_converter, failure)
        if isinstance(exception, ApplicationError):
            failure.stack_trace = ""


DATA_CONVERTER = dataclasses.replace(pydantic_data_converter, failure_converter_class=FailureConverter)


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
