"""Whom the demo talks to: a small language model on this machine, or a script where that cannot run."""

import asyncio
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from runhost.cli.dev_stack import HTTP_OK, Command
from runhost.embedded import DataDirectory
from runhost.embedded.loopback import LOOPBACK, claim_port, http_status
from runhost.protocol import AgentConfig, JsonValue

CHECKOUT = Path(__file__).resolve().parents[2]

CHAT_RUNNER = "plugin:runhost/openai-chat/default"
SCRIPTED_RUNNER = "plugin:runhost/scripted/default"

# Makes this model answer in some sixty tokens and come to an end, which takes two seconds on two cores. Without
# chance, so that everybody sees the same demo.
MESSAGE = "Tell me in three sentences why it matters to finish what you start."
MODEL = "smollm2-135m-instruct"
PROMPT = "You are a helpful assistant."
MAX_TOKENS = 120

SCRIPT_TEXT = (
    "This answer comes from a script, no model was asked. All the same, each piece of it was committed to the "
    "ledger before you read it, and would have been read again from there had your connection broken."
)
SCRIPT_PAUSE_SECONDS = 0.05


class LanguageModel:
    """The model server of ``examples/language_model`` as a child process.

    Args:
        directory: Owned data directory, for its log.
    """

    def __init__(self, directory: DataDirectory) -> None:
        self._port = claim_port("the language model", 0)
        # The examples belong to the checkout, wherever this runs, and not to what is installed.
        command = (sys.executable, "-P", "-m", "examples.language_model", "--host", LOOPBACK, "--port", str(self._port))
        environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
        self._server = Command("model", directory, command, environment, is_ready=self._answers)
        self.stop = self._server.stop

    async def start(self) -> AgentConfig:
        """Start it, load the model, and return the agent that asks it; takes some seconds.

        Raises:
            StartFailed: The engine cannot load on this processor, or it is not installed.
        """
        await self._server.start()
        return AgentConfig(
            runner_id=CHAT_RUNNER,
            runner_config={
                "base_url": f"http://{LOOPBACK}:{self._port}/v1",
                "model": MODEL,
                "prompt": PROMPT,
                "temperature": 0,
                "max_tokens": MAX_TOKENS,
            },
        )

    async def _answers(self) -> bool:
        with suppress(OSError, TimeoutError):
            return await asyncio.wait_for(http_status(self._port, "/healthz"), 1) == HTTP_OK
        return False


def scripted_agent() -> AgentConfig:
    """Return the agent that needs no model."""
    script: list[JsonValue] = []
    for piece in re.findall(r"\S+\s*", SCRIPT_TEXT):
        script.extend(({"delta": piece}, {"pause": SCRIPT_PAUSE_SECONDS}))
    script.extend(({"message": SCRIPT_TEXT}, {"completed": "stop"}))
    return AgentConfig(runner_id=SCRIPTED_RUNNER, runner_config={"script": script})
