"""`runhost dev` with an API and a worker that only pretend, so that its own work can be tested fast.

``python -m tests.cli.stack FOLDER`` or, as ``python -m tests.cli.stack api``, the pretended API.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SLEEP = "import time; time.sleep(600)"


class Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, format: str, *values: object) -> None:  # noqa: A002
        pass


def main(run_command: "Callable[[Path], None]", argument: str) -> None:
    if argument == "api":
        ThreadingHTTPServer(("127.0.0.1", int(os.environ["RUNHOST_API_PORT"])), Health).serve_forever()
    else:
        run_command(Path(argument))


def run_stack(data_dir: Path) -> None:
    from runhost.cli.dev import run_dev
    from runhost.cli.dev_stack import DevOptions

    api = (sys.executable, "-m", "tests.cli.stack", "api")
    worker = (sys.executable, "-c", SLEEP)
    asyncio.run(run_dev(DevOptions(data_dir, commands={"api": api, "worker": worker})))


if __name__ == "__main__":
    main(run_stack, sys.argv[1])
