"""Documents of the registries: models, tool servers, tools, skills, files. No answer has a secret in it."""

import re
from datetime import datetime
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, field_validator, model_validator
from pydantic_core import Url

from runhost.protocol import Identifier, JsonObject, StrictModel
from stores.jsonb import encoded_size
from stores.models import ModelProviderName, ModelType
from stores.skills import MAX_INSTRUCTIONS_CHARACTERS
from stores.tool_servers import Transport

MAX_URL_LENGTH: Final = 2_000
MAX_SECRET_LENGTH: Final = 8_192
MAX_DEFAULT_ARGS_BYTES: Final = 64 * 1024
MAX_DESCRIPTION_LENGTH: Final = 10_000
MAX_TIMEOUT_SECONDS: Final = 3_600
MAX_CONTEXT_WINDOW_TOKENS: Final = 1_000_000_000
MAX_VARIABLES: Final = 100

# What a variable of ours, a search path or a preloaded library would change is the host, not the tool (G-4).
_RESERVED_VARIABLES: Final = ("RUNHOST_", "LD_", "DYLD_")
_RESERVED_NAMES: Final = frozenset({"PATH", "HOME"})


# Parsers forgive what stands before a host in different ways.
_BEGINNING: Final = re.compile(r"https?://[^/?#]", re.IGNORECASE)


def _checked_url(value: str) -> str:
    try:
        url = Url(value)
    except ValueError:
        raise ValueError("must be an address such as https://api.example.com/v1") from None
    if not _BEGINNING.match(value):
        raise ValueError("must begin with http:// or https:// and name a host")
    if url.username is not None or url.password is not None or url.fragment is not None:
        raise ValueError("must not carry a user, a password or a fragment; secrets have fields of their own")
    return value


def _checked_base_url(value: str) -> str:
    if Url(value).query is not None:
        raise ValueError("must not carry a query: paths are appended to it")
    return value.rstrip("/")


def _checked_variable(name: str) -> str:
    if name.upper() in _RESERVED_NAMES or name.upper().startswith(_RESERVED_VARIABLES):
        raise ValueError(f"{name!r} is the host's to set; give the program another variable")
    return name


# Printable ASCII without spaces and backslashes: every other character of an address is written as %XX.
HttpUrl = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_URL_LENGTH, pattern=r"^[\x21-\x5b\x5d-\x7e]+$"),
    AfterValidator(_checked_url),
]
BaseUrl = Annotated[HttpUrl, AfterValidator(_checked_base_url)]

# What can stand in a header.
ApiKey = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SECRET_LENGTH, pattern=r"^[\x21-\x7e]+$")]
HeaderName = Annotated[str, StringConstraints(max_length=255, pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
HeaderValue = Annotated[str, StringConstraints(max_length=MAX_SECRET_LENGTH, pattern=r"^[\x20-\x7e]*$")]

VariableName = Annotated[
    str, StringConstraints(max_length=255, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"), AfterValidator(_checked_variable)
]
VariableValue = Annotated[str, StringConstraints(max_length=MAX_SECRET_LENGTH, pattern=r"^[^\x00]*$")]
Argument = Annotated[str, StringConstraints(max_length=4_096, pattern=r"^[^\x00]*$")]

ServerId = Annotated[str, StringConstraints(max_length=32, pattern=r"^[A-Za-z0-9]+([_-][A-Za-z0-9]+)*$")]
"""Begins the names of tools, which models take as names of functions. Without two `_` in a row it ends at the
first `__`, so that no two servers can have a tool of the same name."""

FileName = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^/\\\x00-\x1f\x7f]*$")]
"""A name without folders: who writes the file to a disk must not be led elsewhere."""


class ModelRequest(StrictModel):
    """A model.

    Attributes:
        name: For people; the id if left out.
        model_type: `llm` writes, `rerank` puts documents in order.
        provider: Its interface; `openai` is any endpoint compatible with OpenAI's.
        base_url: Address of the interface, to which `/chat/completions` and the like are appended.
        model_name: What the provider calls it; the id if left out.
        api_key: What the provider knows the host by. Written, never read. Left out, the stored one stays as long
            as `base_url` does; null takes it away.
        context_window_tokens: Size of its context window, told to runners.
        default_args: Arguments of every call, such as `temperature`; those of a call win. At most 64 KiB of JSON.
        timeout_seconds: Longest that a call may take; the deadline of the run may end it sooner.
        enabled: Whether it can be granted. Disabling takes it back from open runs, for good.
    """

    name: Identifier | None = None
    model_type: ModelType = "llm"
    provider: ModelProviderName = "openai"
    base_url: BaseUrl
    model_name: Identifier | None = None
    api_key: ApiKey | None = Field(default=None, repr=False)
    context_window_tokens: int | None = Field(default=None, ge=1, le=MAX_CONTEXT_WINDOW_TOKENS)
    default_args: JsonObject = Field(default_factory=dict)
    timeout_seconds: float = Field(default=120, gt=0, le=MAX_TIMEOUT_SECONDS)
    enabled: bool = True

    @field_validator("default_args")
    @classmethod
    def _has_default_args_of_bounded_size(cls, value: JsonObject) -> JsonObject:
        if encoded_size(value) > MAX_DEFAULT_ARGS_BYTES:
            raise ValueError(f"must be at most {MAX_DEFAULT_ARGS_BYTES} bytes of JSON")
        return value

    def row(self, model_id: str) -> dict[str, Any]:
        """Return what `ModelStore.put` takes."""
        row = self.model_dump(exclude={"api_key"}) | {"model_id": model_id}
        row["name"] = self.name or model_id
        row["model_name"] = self.model_name or model_id
        if "api_key" in self.model_fields_set:
            row["api_key"] = self.api_key
        return row


class ModelRead(BaseModel):
    """A model. `has_api_key` is all that is told of the key."""

    model_id: str
    name: str
    model_type: str
    provider: str
    base_url: str
    model_name: str
    has_api_key: bool
    context_window_tokens: int | None
    default_args: JsonObject
    timeout_seconds: float
    enabled: bool
    created_at: datetime
    updated_at: datetime


class ToolServerRequest(StrictModel):
    """A tool server that speaks MCP.

    Attributes:
        transport: `stdio` is a program that the host starts, `streamable_http` a server with an address.
        command: The program and its arguments, for `stdio`. No secrets: all who see processes see them (G-6).
        env: Environment of the program. Written, never read: answers have the names. Left out, the stored one
            stays as long as `command` does; null takes it away.
        url: Address, for `streamable_http`.
        headers: Headers of every request, treated like `env`.
        enabled: Whether its tools can be granted. Disabling takes them back from open runs, for good.
    """

    transport: Transport
    command: list[Argument] = Field(default=[], max_length=100)
    env: dict[VariableName, VariableValue] | None = Field(default=None, max_length=MAX_VARIABLES, repr=False)
    url: HttpUrl | None = None
    headers: dict[HeaderName, HeaderValue] | None = Field(default=None, max_length=MAX_VARIABLES, repr=False)
    enabled: bool = True

    @model_validator(mode="after")
    def _has_one_address(self) -> Self:
        if self.transport == "stdio":
            if not self.command or not self.command[0]:
                raise ValueError("transport stdio needs command, the program and its arguments")
            if self.url is not None or self.headers:
                raise ValueError("transport stdio takes no url and no headers")
        else:
            if self.url is None:
                raise ValueError("transport streamable_http needs url, the address of the server")
            if self.command or self.env:
                raise ValueError("transport streamable_http takes no command and no env")
        return self

    def row(self, server_id: str) -> dict[str, Any]:
        """Return what `ToolServerStore.put` takes."""
        row: dict[str, Any] = {
            "server_id": server_id,
            "transport": self.transport,
            "command": self.command,
            "url": self.url,
            "enabled": self.enabled,
        }
        # What the other transport would take is gone with it.
        if self.transport != "stdio" or "env" in self.model_fields_set:
            row["env"] = self.env or {}
        if self.transport == "stdio" or "headers" in self.model_fields_set:
            row["headers"] = self.headers or {}
        return row


class ToolServerRead(BaseModel):
    """A tool server.

    Attributes:
        env_names: Names of the variables; their values are told to nobody.
        header_names: Names of the headers, likewise.
        is_stale: Its tools are not what it said last: it was not asked since it was put, or did not answer.
        last_error: Why it did not answer.
        refreshed_at: When it last told its tools.
    """

    server_id: str
    transport: Transport
    command: list[str]
    env_names: list[str]
    url: str | None
    header_names: list[str]
    enabled: bool
    is_stale: bool
    last_error: str | None
    refreshed_at: datetime | None
    created_at: datetime
    updated_at: datetime


class ToolSummary(BaseModel):
    """A tool, without the schema of its arguments.

    Attributes:
        tool_name: What runs call it by, `<server_id>__<remote_name>`.
        remote_name: What its server calls it.
        description: What it does, for models.
        human_desc: What it does, for people.
        enabled: Whether its server is.
    """

    tool_name: str
    server_id: str
    remote_name: str
    description: str | None
    human_desc: str | None
    enabled: bool


class ToolRead(ToolSummary):
    """A tool; `parameters` is the JSON schema of its arguments."""

    parameters: JsonObject


class ToolRefreshRead(BaseModel):
    """What a tool server offers now."""

    items: list[ToolSummary]


class SkillRequest(StrictModel):
    """A skill.

    Attributes:
        display_name: For people.
        description: What it is for, for people and models.
        instructions: What activating it answers; at most 262,144 characters.
    """

    display_name: Identifier | None = None
    description: str | None = Field(default=None, max_length=MAX_DESCRIPTION_LENGTH)
    instructions: str = Field(min_length=1, max_length=MAX_INSTRUCTIONS_CHARACTERS)


class SkillSummary(BaseModel):
    """A skill, without its instructions; `sha256` is theirs."""

    skill_name: str
    display_name: str | None
    description: str | None
    sha256: str
    created_at: datetime
    updated_at: datetime


class SkillRead(SkillSummary):
    """A skill."""

    instructions: str


class FileRead(BaseModel):
    """What is known of a file; `sha256` is that of its content."""

    file_key: str
    file_name: str | None
    mime_type: str | None
    size_bytes: int
    sha256: str
    created_at: datetime
    updated_at: datetime
