"""Documents of what agents can be granted. What is read drops what a newer host adds."""

from typing import Literal

from pydantic import Field

from runhost.protocol import Identifier, JsonObject, LenientModel, StrictModel, Timestamp


class ModelRequest(StrictModel):
    """A model that agents can be granted.

    Attributes:
        base_url: Address of an interface compatible with OpenAI's, such as `https://api.example.com/v1`.
        name: For people; the id if left out.
        model_type: `llm` writes, `rerank` puts documents in order.
        provider: Its interface.
        model_name: What the provider calls it; the id if left out.
        api_key: What the provider knows the host by. Left out, the host keeps the one that it has, as long as
            `base_url` stays; None takes it away.
        context_window_tokens: Size of its context window.
        default_args: Arguments of every call; those of a call win.
        timeout_seconds: Longest that a call may take, at most 3,600.
        enabled: Whether it can be granted. Disabling takes it back from open runs, for good.
    """

    base_url: str = Field(min_length=1, max_length=2_000)
    name: Identifier | None = None
    model_type: Literal["llm", "rerank"] = "llm"
    provider: Literal["openai"] = "openai"
    model_name: Identifier | None = None
    api_key: str | None = Field(default=None, repr=False)
    context_window_tokens: int | None = Field(default=None, ge=1)
    default_args: JsonObject = Field(default_factory=dict)
    timeout_seconds: float = Field(default=120, gt=0, le=3_600)
    enabled: bool = True


class ModelRead(LenientModel):
    """A model as the host keeps it; `has_api_key` is all that is told of the key."""

    model_id: str
    name: str
    model_type: str
    provider: str
    base_url: str
    model_name: str
    has_api_key: bool
    context_window_tokens: int | None = None
    default_args: JsonObject = Field(default_factory=dict)
    timeout_seconds: float
    enabled: bool
    created_at: Timestamp
    updated_at: Timestamp


class ToolServerRequest(StrictModel):
    """A server that speaks MCP.

    Attributes:
        transport: `stdio` is a program that the host starts, if its operator allows that; `streamable_http` a
            server with an address.
        command: The program and its arguments, for `stdio`. No secrets.
        env: Environment of the program. Left out, the host keeps the one that it has, as long as `command`
            stays; None takes it away.
        url: Address, for `streamable_http`.
        headers: Headers of every request, treated like `env`.
        enabled: Whether its tools can be granted. Disabling takes them back from open runs, for good.
    """

    transport: Literal["stdio", "streamable_http"]
    command: list[str] = Field(default_factory=list[str], max_length=100)
    env: dict[str, str] | None = Field(default=None, repr=False)
    url: str | None = Field(default=None, max_length=2_000)
    headers: dict[str, str] | None = Field(default=None, repr=False)
    enabled: bool = True


class ToolServerRead(LenientModel):
    """A tool server as the host keeps it.

    Attributes:
        env_names: Names of the variables; their values are told to nobody.
        header_names: Names of the headers, likewise.
        is_stale: Its tools are not what it said last: it was not asked since it was put, or did not answer.
        last_error: Why it did not answer.
        refreshed_at: When it last told its tools.
    """

    server_id: str
    transport: str
    command: list[str] = Field(default_factory=list[str])
    env_names: list[str] = Field(default_factory=list[str])
    url: str | None = None
    header_names: list[str] = Field(default_factory=list[str])
    enabled: bool
    is_stale: bool
    last_error: str | None = None
    refreshed_at: Timestamp | None = None
    created_at: Timestamp
    updated_at: Timestamp


class ToolSummary(LenientModel):
    """A tool, without the schema of its arguments.

    Attributes:
        tool_name: What runs call it by, `<server_id>__<remote_name>`.
        server_id: The server that offers it.
        remote_name: What its server calls it.
        description: What it does, for models.
        human_desc: What it does, for people.
        enabled: Whether its server is.
    """

    tool_name: str
    server_id: str
    remote_name: str
    description: str | None = None
    human_desc: str | None = None
    enabled: bool


class ToolRead(ToolSummary):
    """A tool; `parameters` is the JSON schema of its arguments."""

    parameters: JsonObject = Field(default_factory=dict)


class ToolList(LenientModel):
    """The tools of a server."""

    items: list[ToolSummary] = Field(default_factory=list[ToolSummary])


class SkillRequest(StrictModel):
    """A skill that agents can be granted.

    Attributes:
        instructions: What activating it answers; at most 262,144 characters.
        display_name: For people.
        description: What it is for, for people and models; at most 10,000 characters.
    """

    instructions: str = Field(min_length=1, max_length=256 * 1024)
    display_name: Identifier | None = None
    description: str | None = Field(default=None, max_length=10_000)


class SkillSummary(LenientModel):
    """A skill, without its instructions; `sha256` is theirs."""

    skill_name: str
    display_name: str | None = None
    description: str | None = None
    sha256: str
    created_at: Timestamp
    updated_at: Timestamp


class SkillRead(SkillSummary):
    """A skill."""

    instructions: str


class FileRead(LenientModel):
    """What is known of a file; `sha256` is that of its content."""

    file_key: str
    file_name: str | None = None
    mime_type: str | None = None
    size_bytes: int
    sha256: str
    created_at: Timestamp
    updated_at: Timestamp
