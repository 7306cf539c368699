"""What the servers of one machine need of the network: they listen on 127.0.0.1 only."""

import asyncio
import errno
import json
import random
import socket

from runhost.embedded.errors import EmbeddedError, PortInUse

LOOPBACK = "127.0.0.1"


# Below the ports that systems give to outgoing connections, which would take one from a server that is starting.
_SERVER_PORTS = range(15_000, 32_000)


def free_port() -> int:
    """Return a port that was free a moment ago; the caller must cope with losing it to another server."""
    for port in (*random.sample(_SERVER_PORTS, 50), 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise EmbeddedError("There is no free port on 127.0.0.1.")


def claim_port(name: str, wanted: int) -> int:
    """Return the port to use for ``name``: the wanted one, or any free one for 0.

    Raises:
        PortInUse: Something listens on the wanted port.
        EmbeddedError: The system does not let us have it.
    """
    if wanted == 0:
        return free_port()
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the servers do themselves: connections still closing do not make a port busy.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, wanted))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortInUse(name, wanted) from error
            message = f"Port {wanted} for {name} cannot be used: {error.strerror}. Choose another one."
            raise EmbeddedError(message) from error
    return wanted


async def http_status(port: int, path: str, post: object = None) -> int:
    """Ask a loopback HTTP server for ``path``; returns the status, 0 for an answer that is none.

    Args:
        port: Where it listens.
        path: With a leading slash.
        post: A JSON value to post, None for a plain GET.
    """
    body = b"" if post is None else json.dumps(post).encode()
    head = (
        f"{'GET' if post is None else 'POST'} {path} HTTP/1.1",
        f"Host: {LOOPBACK}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        writer.write("\r\n".join((*head, "", "")).encode() + body)
        words = (await reader.readline()).split(maxsplit=2)
        return int(words[1]) if len(words) > 1 else 0
    finally:
        writer.close()
