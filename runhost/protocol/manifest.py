"""What a runner says about itself, and how the host keeps it (PROTOCOL 3, HOST 2.5, D-14)."""

from typing import Annotated, Literal, Self, TypeAlias, cast

from pydantic import ConfigDict, Field, model_validator

from runhost.protocol.identifiers import Identifier, RunnerId
from runhost.protocol.json import JsonObject, JsonValue, LenientModel, StrictModel

I18nText: TypeAlias = Annotated[dict[Annotated[str, Field(min_length=1, max_length=35)], str], Field(min_length=1)]
"""Text by locale (`en_US`, `zh_Hans`, ...), at least one entry."""


class AgentRunnerCapabilities(StrictModel):
    """What a runner can do; a hint for display and resources, never a grant (PROTOCOL 3.3).

    Attributes:
        streaming: May yield `message.delta`.
        tool_calling: May use tools; needed before any tool is projected.
        knowledge_retrieval: May use knowledge bases; needed before any is projected.
        multimodal_input: Understands input beyond plain text.
        skill_authoring: Wants skill facts and the skill tools.
        interrupt: Can be cancelled.
        steering: Pulls follow-up input at turn boundaries.
    """

    streaming: bool = False
    tool_calling: bool = False
    knowledge_retrieval: bool = False
    multimodal_input: bool = False
    skill_authoring: bool = False
    interrupt: bool = False
    steering: bool = False


class AgentRunnerPermissions(StrictModel):
    """Upper bound of the host resources a runner asks for, as allowed operations (PROTOCOL 3.4)."""

    models: list[Literal["invoke", "stream", "rerank"]] = Field(default_factory=list)
    tools: list[Literal["detail", "call"]] = Field(default_factory=list)
    knowledge_bases: list[Literal["list", "retrieve"]] = Field(default_factory=list)
    history: list[Literal["page", "search"]] = Field(default_factory=list)
    events: list[Literal["get", "page"]] = Field(default_factory=list)
    artifacts: list[Literal["metadata", "read"]] = Field(default_factory=list)
    storage: list[Literal["plugin", "workspace"]] = Field(default_factory=list)
    files: list[Literal["config", "knowledge"]] = Field(default_factory=list)


class DynamicFormItemSchema(LenientModel):
    """One item of a configuration form.

    Fields that we do not know are kept, since the form is drawn by others.

    Attributes:
        name: Key of the value in the config.
        type: Kind of input.
        id: Id of the item in the form.
        label: What to call it.
        description: What it is for.
        required: A value must be given.
        default: Value when none is given.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride]

    name: str | None = Field(default=None, max_length=255)
    type: str = Field(max_length=100)
    id: str | None = None
    label: I18nText | None = None
    description: I18nText | None = None
    required: bool = False
    default: JsonValue = None


class AgentRunnerManifest(StrictModel):
    """A runner's description of itself (PROTOCOL 3.2).

    Attributes:
        id: Runner id; must equal the address that the runner is found at (D-14).
        name: Runner name inside its plugin.
        label: What to call it.
        description: What it does.
        capabilities: What it can do.
        permissions: Most that it asks for.
        config_schema: Form of an agent's configuration.
        metadata: For display and diagnosis only.
    """

    id: Identifier
    name: Identifier
    label: I18nText
    description: I18nText | None = None
    capabilities: AgentRunnerCapabilities = AgentRunnerCapabilities()
    permissions: AgentRunnerPermissions = AgentRunnerPermissions()
    config_schema: list[DynamicFormItemSchema] = Field(default_factory=list)
    metadata: JsonObject = Field(default_factory=dict)


class AgentRunnerDiscovery(LenientModel):
    """A runner as its plugin runtime lists it (PROTOCOL 3.1).

    Attributes:
        plugin_author: Address, with the next two.
        plugin_name: See above.
        runner_name: See above.
        runner_description: Used when the manifest has no description.
        manifest: The typed manifest.
        capabilities: Copy of the manifest's for old readers; never read by the host.
        permissions: Likewise.
        config: Configuration form; goes before the manifest's when it is not empty.
        plugin_version: Version of the plugin.
    """

    plugin_author: Identifier
    plugin_name: Identifier
    runner_name: Identifier
    runner_description: I18nText | None = None
    manifest: AgentRunnerManifest
    capabilities: AgentRunnerCapabilities = AgentRunnerCapabilities()
    permissions: AgentRunnerPermissions = AgentRunnerPermissions()
    config: list[DynamicFormItemSchema] = Field(default_factory=list)
    plugin_version: str | None = Field(default=None, max_length=100)

    @model_validator(mode="before")
    @classmethod
    def _copy_manifest(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        fields = cast("dict[str, object]", value)
        manifest = fields.get("manifest")
        if isinstance(manifest, AgentRunnerManifest):
            known = cast("dict[str, object]", manifest.__dict__)
        elif isinstance(manifest, dict):
            known = cast("dict[str, object]", manifest)
        else:
            return fields
        return {name: known[name] for name in ("capabilities", "permissions") if name in known} | fields


class ListAgentRunnersResponse(LenientModel):
    """Answer to `LIST_AGENT_RUNNERS` (PROTOCOL 3.1); read entries one by one to survive a bad one."""

    runners: list[AgentRunnerDiscovery] = Field(default_factory=list)


class RunnerAddressMismatch(ValueError):
    """A manifest claims another id than the address it was found at (D-14)."""

    def __init__(self, manifest_id: str, address: str) -> None:
        super().__init__(
            f"manifest id {manifest_id!r} does not equal the runner's address {address!r}: "
            "set the manifest's id to the address"
        )
        self.manifest_id = manifest_id
        self.address = address


class AgentRunnerDescriptor(LenientModel):
    """A runner as the host's registry keeps it (HOST 2.5).

    Attributes:
        id: Runner id.
        source: Always `plugin` (P-D5).
        label: What to call it.
        description: What it does.
        plugin_author: Part of the id, like the next two.
        plugin_name: See above.
        runner_name: See above.
        plugin_version: Version of the plugin.
        config_schema: Items of the configuration form.
        capabilities: What it can do.
        permissions: Most that it asks for.
        raw_manifest: The manifest as found.
    """

    id: Identifier
    source: Literal["plugin"] = "plugin"
    label: I18nText
    description: I18nText | None = None
    plugin_author: Identifier
    plugin_name: Identifier
    runner_name: Identifier
    plugin_version: str | None = Field(default=None, max_length=100)
    config_schema: list[JsonObject] = Field(default_factory=list)
    capabilities: AgentRunnerCapabilities = AgentRunnerCapabilities()
    permissions: AgentRunnerPermissions = AgentRunnerPermissions()
    raw_manifest: JsonObject = Field(default_factory=dict)

    @property
    def runner_id(self) -> str:
        """The same as `id`."""
        return self.id

    @property
    def plugin_id(self) -> str:
        """Identity of the plugin, `<author>/<plugin_name>`."""
        return f"{self.plugin_author}/{self.plugin_name}"

    @classmethod
    def from_discovery(cls, discovery: AgentRunnerDiscovery) -> Self:
        """Describe a discovered runner.

        Raises:
            InvalidRunnerId: The address fields make no runner id.
            RunnerAddressMismatch: The manifest claims another id (D-14).
        """
        manifest = discovery.manifest
        address = str(RunnerId(discovery.plugin_author, discovery.plugin_name, discovery.runner_name))
        if manifest.id != address:
            raise RunnerAddressMismatch(manifest.id, address)
        form = discovery.config or manifest.config_schema
        return cls(
            id=address,
            label=manifest.label,
            description=manifest.description or discovery.runner_description,
            plugin_author=discovery.plugin_author,
            plugin_name=discovery.plugin_name,
            runner_name=discovery.runner_name,
            plugin_version=discovery.plugin_version,
            config_schema=[item.model_dump(exclude_unset=True) for item in form],
            capabilities=manifest.capabilities,
            permissions=manifest.permissions,
            raw_manifest=manifest.model_dump(exclude_unset=True),
        )
