"""A worker-like process: starts the program in the folder it is given, and waits to be killed."""

import asyncio
import sys
from pathlib import Path
from typing import Any, cast

from runners.program import RunnerProgram
from tests.runners.programs import start_program


async def main() -> None:
    session = start_program(RunnerProgram(Path(sys.argv[1]), (sys.executable, "-I", "-S", "program.py")))
    (result,) = cast("list[dict[str, Any]]", await session.next_batch())
    sys.stdout.write(f"{' '.join(map(str, result['data']['pids']))}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
