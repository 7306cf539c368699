"""Starts a server in a data directory, tells its process id and port, and waits to be killed.

``python -m tests.embedded.owner postgres|temporal FOLDER``
"""

import asyncio
import json
import sys
from pathlib import Path

from runhost.embedded import DataDirectory, EmbeddedPostgres, EmbeddedTemporal


async def main(kind: str, path: Path) -> None:
    with DataDirectory(path) as directory:
        if kind == "postgres":
            server = EmbeddedPostgres(directory, durable=False)
        else:
            server = EmbeddedTemporal(directory, ui_port=None)
        await server.start()
        sys.stdout.write(json.dumps({"pid": server.pid, "port": server.port}) + "\n")
        sys.stdout.flush()
        await server.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
