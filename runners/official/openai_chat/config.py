"""The runner's config: one value per item of the form in runner.yaml."""

import os
import re
from typing import Annotated, Any, Final, Literal

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from runhost.protocol import JsonObject, describe_validation
from runners.official.openai_chat.failures import CONFIG, ChatFailure

_KEY_NAME: Final = re.compile(r"(?:[A-Z][A-Z0-9_]*_)?API_KEY")


class PromptMessage(BaseModel):
    """One message that goes before the user's."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    role: Literal["system", "user", "assistant"] = "system"
    content: Annotated[str, Field(max_length=200_000)]


class ChatConfig(BaseModel):
    """Where to send a chat, and how.

    Attributes:
        base_url: address below which `/chat/completions` lies, often ending in `/v1`.
        model: model name as the endpoint knows it.
        api_key_env: name of the worker's environment variable that holds the key; empty for none.
        prompt: messages before the user's; a string is one system message.
        temperature: 0 to 2; None leaves it to the endpoint.
        max_tokens: most tokens of an answer; None leaves it to the endpoint.
        timeout: seconds for the whole answer; the run's deadline may come earlier.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)

    base_url: Annotated[str, Field(max_length=2_000)]
    model: Annotated[str, Field(min_length=1, max_length=255)]
    api_key_env: Annotated[str, Field(max_length=255)] = ""
    prompt: Annotated[list[PromptMessage], Field(max_length=100)] = []
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    timeout: Annotated[float, Field(gt=0, le=86_400)] = 120

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, fields: dict[str, Any]) -> dict[str, Any]:
        # Forms send what was left empty as "" or null.
        return {name: value for name, value in fields.items() if value not in ("", None)}

    @field_validator("prompt", mode="before")
    @classmethod
    def _wrap_text(cls, prompt: object) -> object:
        return [{"role": "system", "content": prompt}] if isinstance(prompt, str) else prompt

    @field_validator("base_url")
    @classmethod
    def _check_address(cls, base_url: str) -> str:
        try:
            url = httpx.URL(base_url)
        except httpx.InvalidURL:
            raise ValueError("no valid address") from None
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError("must be an http:// or https:// address")
        if url.userinfo or url.query or url.fragment:
            # They would end up in logs; a key has a place of its own.
            raise ValueError("must not carry a user, a query or a fragment; keys go into 'api_key_env'")
        return base_url.rstrip("/")

    @field_validator("api_key_env")
    @classmethod
    def _check_key_name(cls, name: str) -> str:
        # Whoever writes an agent's config also chooses where the key is sent: the worker's other secrets must
        # stay out of reach.
        if not _KEY_NAME.fullmatch(name) or name.startswith("RUNHOST_"):
            raise ValueError("must be a variable named like 'OPENAI_API_KEY', and none of the host's own")
        return name


def read_config(config: JsonObject) -> ChatConfig:
    """Read the config of a run.

    Raises:
        ChatFailure: `runner.config`, names the fields at fault and quotes no value.
    """
    try:
        return ChatConfig.model_validate(config)
    except ValidationError as error:
        raise ChatFailure(CONFIG, f"agent config: {describe_validation(error)}") from None


def read_key(name: str) -> str:
    """Return the key that the config names, "" if it names none.

    Raises:
        ChatFailure: `runner.config`, the variable is missing, empty or holds no key.
    """
    if not name:
        return ""
    key = os.environ.get(name, "").strip()
    if not key:
        raise ChatFailure(CONFIG, f"environment variable {name!r} is not set for this worker; set it to the key")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ChatFailure(CONFIG, f"environment variable {name!r} holds characters that no key has")
    return key
