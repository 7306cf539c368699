"""How requests leave: on an event loop, or blocking.

Everything above a wire is written once, as coroutines. Over a `BlockingWire` they never wait for an event loop,
so `run_blocking` runs them to their end in the thread that calls it: no loop, no thread of our own, and Ctrl-C
arrives in the middle of whatever blocks.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, Final, Protocol, TypedDict, TypeVar

import httpx

from runhost.addresses import checked_secret, checked_url, is_loopback

CONNECT_TIMEOUT_SECONDS: Final = 5.0
ANSWER_TIMEOUT_SECONDS: Final = 30.0

_Result = TypeVar("_Result")


class Wire(Protocol):
    """Sends requests to one host."""

    @property
    def base_url(self) -> str:
        """Address of the host."""
        ...

    def build_request(self, method: str, path: str, **parts: Any) -> httpx.Request:
        """Build a request as `httpx.Client.build_request` does."""
        ...

    async def send(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        """Send a request; of a streamed answer the body has not been read yet.

        Raises:
            httpx.TransportError: There is no answer, or it broke off.
        """
        ...

    async def read(self, response: httpx.Response) -> None:
        """Read the body of a streamed answer."""
        ...

    def pieces(self, response: httpx.Response) -> AsyncGenerator[bytes]:
        """Yield the body of a streamed answer as it comes."""
        ...

    async def end(self, response: httpx.Response) -> None:
        """Let go of a streamed answer."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class WireFactory(Protocol):
    """Builds a wire to a host."""

    def __call__(self, base_url: str, key: str) -> Wire:
        """Build it.

        Raises:
            ValueError: The address or the key cannot be one.
        """
        ...


class _Options(TypedDict):
    base_url: str
    headers: dict[str, str]
    timeout: httpx.Timeout
    limits: httpx.Limits
    verify: bool
    trust_env: bool


def _options(base_url: str, key: str) -> _Options:
    url = checked_url(base_url)
    return {
        "base_url": url,
        "headers": {"Authorization": f"Bearer {checked_secret(key, 'key')}", "Accept": "application/json"},
        "timeout": httpx.Timeout(ANSWER_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS),
        # Who follows many runs holds many connections, and other calls must not wait for theirs.
        "limits": httpx.Limits(max_connections=None, max_keepalive_connections=20),
        # Reading the certificates takes 0.1 s, and redirects, which could lead to one, are not followed.
        "verify": url.startswith("https:"),
        # A proxy that the environment names is for the world outside this machine.
        "trust_env": not is_loopback(url),
    }


class AsyncWire:
    """A wire for one event loop."""

    def __init__(self, base_url: str, key: str) -> None:
        options = _options(base_url, key)
        self.base_url = options["base_url"]
        self._http = httpx.AsyncClient(**options)

    def build_request(self, method: str, path: str, **parts: Any) -> httpx.Request:
        """Build a request."""
        return self._http.build_request(method, path, **parts)

    async def send(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        """Send a request."""
        return await self._http.send(request, stream=stream)

    async def read(self, response: httpx.Response) -> None:
        """Read a body."""
        await response.aread()

    async def pieces(self, response: httpx.Response) -> AsyncGenerator[bytes]:
        """Yield a body."""
        async for piece in response.aiter_bytes():
            yield piece

    async def end(self, response: httpx.Response) -> None:
        """Close an answer."""
        await response.aclose()

    async def sleep(self, seconds: float) -> None:
        """Wait on the loop."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


class BlockingWire:
    """A wire for any thread; its coroutines are over when they return, for `run_blocking`."""

    def __init__(self, base_url: str, key: str) -> None:
        options = _options(base_url, key)
        self.base_url = options["base_url"]
        self._http = httpx.Client(**options)

    def build_request(self, method: str, path: str, **parts: Any) -> httpx.Request:
        """Build a request."""
        return self._http.build_request(method, path, **parts)

    async def send(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        """Send a request and block until it is answered."""
        return self._http.send(request, stream=stream)

    async def read(self, response: httpx.Response) -> None:
        """Block until a body is read."""
        response.read()

    async def pieces(self, response: httpx.Response) -> AsyncGenerator[bytes]:
        """Yield a body, blocking before each piece."""
        for piece in response.iter_bytes():
            yield piece

    async def end(self, response: httpx.Response) -> None:
        """Close an answer."""
        response.close()

    async def sleep(self, seconds: float) -> None:
        """Block the thread."""
        time.sleep(seconds)  # noqa: ASYNC251 - blocking is what this wire is for

    async def close(self) -> None:
        """Close the connections."""
        self._http.close()


def run_blocking(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine that only ever waits for a `BlockingWire`, and return its result.

    Raises:
        RuntimeError: It waits for an event loop; a bug of its author.
    """
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    work.close()
    raise RuntimeError(f"{work!r} waits for an event loop, which a blocking client has none of")
