"""Serve the model: `python -m examples.language_model --port 0`.

Prints one line of JSON when it takes requests: `base_url` (ends in `/v1`), `model`, `pid`. SIGTERM, SIGINT
or, with `--until-stdin-closes`, the end of standard input stop it with exit code 0. Other exit codes: 1 the
address is not free, 2 wrong arguments, 3 the engine cannot work on this processor, 4 engine or model are not
installed.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading

from examples.language_model.check import EXIT_MISSING, EXIT_UNUSABLE
from examples.language_model.server import Server
from examples.language_model.turns import Turns

# The check takes 1 s; a machine that needs this long would not answer in useful time either.
CHECK_TIMEOUT_SECONDS = 60


def main() -> int:
    options = _parse_arguments()
    if code := _check_engine():
        return code
    try:
        listener = socket.create_server((options.host, options.port))
    except OSError as error:
        return _fail(1, f"cannot listen on {options.host}:{options.port}: {error}")
    # Not before the check, which is there because this import can end the process.
    from examples.language_model.smollm2 import SmolLM2

    server = Server(Turns(SmolLM2(options.threads)))
    if options.until_stdin_closes:
        threading.Thread(target=_stop_at_end_of_input, args=[server], daemon=True).start()
    # The server raises the signal that stopped it once more, when it is down: then it means nothing any more.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)
    server.run(sockets=[listener])
    return 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.language_model", description="A small language model.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=8790, help="port, 0 takes a free one (%(default)s)")
    parser.add_argument("--threads", type=int, default=_default_threads(), help="threads of the engine (%(default)s)")
    parser.add_argument("--until-stdin-closes", action="store_true", help="stop when standard input ends")
    return parser.parse_args()


def _default_threads() -> int:
    """Leave one core free: the engine's threads wait for each other busily, one without a core stalls all."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores - 1, 4))


def _check_engine() -> int:
    """Try the engine in a child, which dies in our place; returns an exit code, 0 if all is well."""
    command = [sys.executable, "-m", "examples.language_model.check"]
    try:
        check = subprocess.run(  # noqa: S603 (our own interpreter and module)
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CHECK_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _fail(EXIT_UNUSABLE, f"engine cannot load on this processor: no answer in {CHECK_TIMEOUT_SECONDS} s")
    if check.returncode == 0:
        return 0
    if check.returncode == EXIT_MISSING:
        return _fail(EXIT_MISSING, check.stderr.strip())
    reason = check.stderr.strip().rpartition("\n")[2] or f"exit code {check.returncode}"
    if check.returncode < 0:
        reason = f"killed by {signal.Signals(-check.returncode).name}"
    return _fail(EXIT_UNUSABLE, f"engine cannot load on this processor: {reason}")


def _stop_at_end_of_input(server: Server) -> None:
    # Not through `sys.stdin`: its lock, held by this thread, would break the interpreter's exit.
    while os.read(0, 4096):
        continue
    server.should_exit = True


def _fail(code: int, message: str) -> int:
    print(message, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
