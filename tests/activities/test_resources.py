"""What a run may reach (HOST 6.1, PROTOCOL 5.8, D-10 to D-13)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.available_apis import available_apis
from activities.resources import ResourceRequest, context_window_tokens
from runhost.protocol import (
    AgentConfig,
    AgentResources,
    AgentRunnerCapabilities,
    AgentRunnerPermissions,
    ContextAPICapabilities,
    ResourcePolicy,
)
from stores.catalog import Catalog, CatalogEntry, CatalogModel, CatalogQuery

EVERYTHING = AgentRunnerPermissions(
    models=["invoke", "stream", "rerank"],
    tools=["detail", "call"],
    knowledge_bases=["list", "retrieve"],
    history=["page", "search"],
    events=["get", "page"],
    artifacts=["metadata", "read"],
    storage=["plugin", "workspace"],
    files=["config", "knowledge"],
)
ABLE = AgentRunnerCapabilities(tool_calling=True, knowledge_retrieval=True, skill_authoring=True, steering=True)
FORM = [
    {"name": "model", "type": "model-fallback-selector"},
    {"name": "ranker", "type": "rerank-model-selector"},
    {"name": "bases", "type": "knowledge-base-multi-selector"},
    {"name": "files", "type": "array[file]"},
]
CATALOG = Catalog(
    models={
        "gpt": CatalogModel("llm", "openai", 128_000),
        "small": CatalogModel("llm", "openai"),
        "other": CatalogModel("llm", "openai", 8_000),
        "ranker": CatalogModel("rerank", "openai"),
    },
    tools={"search": CatalogEntry(description="Searches."), "add": CatalogEntry()},
    knowledge_bases={"k1": CatalogEntry("Manuals", "postgres"), "k2": CatalogEntry("Tickets", "postgres")},
    skills={"write": CatalogEntry("Writing", description="Writes."), "ask": CatalogEntry()},
    files={"f1": CatalogEntry("f1.txt", "text/plain")},
    documents={"d1": CatalogEntry("d1.md", "text/markdown", kb_id="k1"), "d2": CatalogEntry("d2", None, kb_id="k2")},
)


def request(
    *,
    permissions: AgentRunnerPermissions = EVERYTHING,
    capabilities: AgentRunnerCapabilities = ABLE,
    config: dict[str, Any] | None = None,
    **policy: Any,
) -> ResourceRequest:
    return ResourceRequest(permissions, capabilities, ResourcePolicy(**policy), config or {}, FORM)


def grants(**more: Any) -> AgentResources:
    return built(request(**more), CATALOG)


def built(asked: ResourceRequest, catalog: Catalog) -> AgentResources:
    return AgentResources.model_validate(asked.build(catalog))


def models(resources: AgentResources) -> list[tuple[str, list[str]]]:
    return [(model.model_id, model.operations) for model in resources.models]


class TestModels:
    def test_selected_ones_come_before_those_that_the_policy_adds(self) -> None:
        config = {"model": {"primary": "gpt", "fallbacks": ["small", "gone"]}}
        found = grants(config=config, allowed_model_uuids=["other", "gpt"])
        assert models(found) == [(name, ["invoke", "stream"]) for name in ("gpt", "small", "other")]
        assert (found.models[0].model_type, found.models[0].provider) == ("llm", "openai")

    def test_model_selected_in_both_roles_has_both(self) -> None:
        """D-12."""
        assert models(grants(config={"model": "gpt", "ranker": "gpt"})) == [("gpt", ["invoke", "stream", "rerank"])]

    def test_model_that_the_policy_adds_has_the_role_of_its_type(self) -> None:
        found = grants(config={"ranker": "other"}, allowed_model_uuids=["ranker", "other"])
        assert models(found) == [("ranker", ["rerank"]), ("other", ["invoke", "stream", "rerank"])]

    @pytest.mark.parametrize(
        ("permitted", "found"),
        [
            ([], []),
            (["stream"], [("gpt", ["stream"])]),
            (["rerank"], [("ranker", ["rerank"])]),
            (["rerank", "invoke"], [("gpt", ["invoke"]), ("ranker", ["rerank"])]),
        ],
        ids=str,
    )
    def test_only_permitted_operations_are_granted(self, permitted: Any, found: Any) -> None:
        permissions = AgentRunnerPermissions(models=permitted)
        config = {"model": "gpt", "ranker": "ranker"}
        assert models(grants(permissions=permissions, config=config)) == found

    def test_nothing_is_added_where_the_policy_names_nothing(self) -> None:
        assert grants(config={}).models == []

    def test_denied_model_is_taken_from_both(self) -> None:
        found = grants(config={"model": "gpt"}, allowed_model_uuids=["gpt", "small"], denied_model_uuids=["gpt"])
        assert models(found) == [("small", ["invoke", "stream"])]


class TestContextWindow:
    def test_is_that_of_the_first_model_that_writes(self) -> None:
        """H-C6; F-8 is a window that was null whatever was looked up."""
        found = grants(config={"model": {"primary": "gone", "fallbacks": ["gpt", "other"]}, "ranker": "ranker"})
        assert context_window_tokens(found, CATALOG) == 128_000

    def test_is_null_where_the_first_one_does_not_say(self) -> None:
        found = grants(config={"model": {"primary": "small", "fallbacks": ["gpt"]}})
        assert context_window_tokens(found, CATALOG) is None

    def test_is_null_without_a_model_that_writes(self) -> None:
        assert context_window_tokens(grants(config={"ranker": "ranker"}), CATALOG) is None


class TestTools:
    def test_those_named_by_the_policy_are_granted_with_their_description(self) -> None:
        found = grants(allowed_tool_names=["search", "gone", "add"], allowed_skill_names=[])
        assert [(tool.tool_name, tool.tool_type, tool.description, tool.operations) for tool in found.tools] == [
            ("search", "mcp", "Searches.", ["detail", "call"]),
            ("add", "mcp", None, ["detail", "call"]),
        ]

    @pytest.mark.parametrize(
        "more",
        [
            {"capabilities": AgentRunnerCapabilities(skill_authoring=True)},
            {"permissions": AgentRunnerPermissions(models=["invoke"])},
            {"allowed_tool_names": []},
            {"allowed_tool_names": None},
            {"denied_tool_names": ["search"]},
        ],
        ids=["incapable", "not permitted", "empty", "null", "denied"],
    )
    def test_none_is_granted(self, more: dict[str, Any]) -> None:
        fields: dict[str, Any] = {"allowed_tool_names": ["search"], "allowed_skill_names": []}
        assert grants(**(fields | more)).tools == []

    def test_activate_comes_with_the_first_skill(self) -> None:
        (tool,) = grants().tools
        assert (tool.tool_name, tool.tool_type) == ("activate", "skill")

    @pytest.mark.parametrize(
        "more",
        [
            {"allowed_skill_names": []},
            {"denied_skill_names": ["ask", "write"]},
            {"denied_tool_names": ["activate"]},
            {"capabilities": AgentRunnerCapabilities(tool_calling=True)},
            {"capabilities": AgentRunnerCapabilities(skill_authoring=True)},
            {"permissions": AgentRunnerPermissions(tools=["detail"])},
        ],
        ids=["no skill", "all skills denied", "denied", "no skills wanted", "no tools wanted", "no call"],
    )
    def test_activate_is_not_granted_by_its_name(self, more: dict[str, Any]) -> None:
        found = grants(allowed_tool_names=["activate"], **more)
        assert found.tools == []


class TestKnowledge:
    def test_selected_bases_come_before_added_ones(self) -> None:
        found = grants(config={"bases": ["k2", "gone"]}, allowed_kb_uuids=["k1", "k2"])
        assert [(base.kb_id, base.kb_name, base.kb_type) for base in found.knowledge_bases] == [
            ("k2", "Tickets", "postgres"),
            ("k1", "Manuals", "postgres"),
        ]
        assert found.knowledge_bases[0].operations == ["list", "retrieve"]

    @pytest.mark.parametrize(
        "more",
        [
            {"capabilities": AgentRunnerCapabilities()},
            {"permissions": AgentRunnerPermissions(files=["knowledge"])},
            {"denied_kb_uuids": ["k1"]},
        ],
        ids=["incapable", "not permitted", "denied"],
    )
    def test_base_that_is_not_granted_takes_its_files_along(self, more: dict[str, Any]) -> None:
        found = grants(config={"bases": ["k1"]}, **more)
        assert (found.knowledge_bases, found.files) == ([], [])

    def test_files_of_a_granted_base_are_readable(self) -> None:
        """D-13."""
        (file,) = grants(config={"bases": ["k1"]}).files
        assert (file.file_id, file.file_name, file.mime_type) == ("d1", "d1.md", "text/markdown")
        assert (file.source, file.operations) == ("knowledge_base:k1", ["knowledge"])


class TestSkills:
    def test_null_means_all_in_order_of_their_names(self) -> None:
        found = grants().skills
        assert [(skill.skill_name, skill.display_name, skill.description) for skill in found] == [
            ("ask", "ask", None),
            ("write", "Writing", "Writes."),
        ]

    def test_named_ones_are_those_that_exist_and_are_not_denied(self) -> None:
        found = grants(allowed_skill_names=["write", "gone", "ask"], denied_skill_names=["ask"])
        assert [skill.skill_name for skill in found.skills] == ["write"]

    def test_incapable_runner_has_none(self) -> None:
        assert grants(capabilities=AgentRunnerCapabilities()).skills == []


class TestFiles:
    def test_file_of_the_config_keeps_what_the_form_noted(self) -> None:
        found = grants(config={"files": [{"file_key": "f1", "name": "mine.txt"}, {"file_key": "gone"}]})
        (file,) = found.files
        assert (file.file_id, file.file_name, file.mime_type) == ("f1", "mine.txt", "text/plain")
        assert (file.source, file.operations) == ("config", ["config"])

    def test_runner_that_asks_for_none_has_none(self) -> None:
        permissions = AgentRunnerPermissions(files=["knowledge"])
        assert grants(permissions=permissions, config={"files": [{"file_key": "f1"}]}).files == []


class TestStorage:
    @pytest.mark.parametrize("area", ["plugin", "workspace"])
    def test_needs_permission_and_policy(self, area: Any) -> None:
        field = f"{area}_storage"
        permitted = AgentRunnerPermissions(storage=[area])
        assert getattr(grants(permissions=permitted, **{f"allow_{field}": True}).storage, field)
        assert not getattr(grants(permissions=permitted, **{f"allow_{field}": False}).storage, field)
        assert not getattr(grants(permissions=AgentRunnerPermissions(), **{f"allow_{field}": True}).storage, field)


def test_agent_that_wants_nothing_looks_nothing_up() -> None:
    """The path of every plain run."""
    bare = request(permissions=AgentRunnerPermissions(), capabilities=AgentRunnerCapabilities())
    assert bare.query == CatalogQuery(models=[], tools=[], knowledge_bases=[], skills=[], files=[], documents=())
    assert bare.query.by_part() == {}
    assert bare.build(Catalog()) == AgentResources().model_dump(mode="json")


def test_what_does_not_exist_is_counted_by_kind() -> None:
    config = {"model": {"primary": "x", "fallbacks": ["gpt", "y"]}, "bases": ["z"], "files": [{"file_key": "q"}]}
    asked = request(config=config, allowed_tool_names=["search", "t"], allowed_skill_names=["s", "ask"])
    assert asked.unknown(CATALOG) == {"model": 2, "tool": 1, "knowledge_base": 1, "skill": 1, "file": 1}


class TestAvailableApis:
    @staticmethod
    def flags(
        *, permissions: Any = EVERYTHING, capabilities: Any = ABLE, talks: bool = True, **config: Any
    ) -> set[str]:
        agent = AgentConfig(runner_id="plugin:a/b/c", **config)
        resources = built(ResourceRequest(permissions, capabilities, agent.resource_policy, {}, []), Catalog())
        found = available_apis(permissions, capabilities, agent, resources, has_conversation=talks)
        return {name for name, is_on in found.model_dump().items() if is_on}

    def test_all_that_a_host_without_entry_requests_has(self) -> None:
        assert self.flags() == set(ContextAPICapabilities.model_fields) - {"prompt_get"}

    def test_without_a_conversation_there_is_nothing_to_page(self) -> None:
        assert self.flags(talks=False) == {"event_get", "artifact_metadata", "artifact_read", "state", "storage"}

    def test_runner_that_asks_for_nothing_has_state_alone(self) -> None:
        found = self.flags(permissions=AgentRunnerPermissions(), capabilities=AgentRunnerCapabilities())
        assert found == {"state"}

    def test_policy_switches_off(self) -> None:
        """D-11."""
        policy = ResourcePolicy(
            allow_history=False, allow_events=False, allow_artifacts=False, allow_plugin_storage=False
        )
        assert self.flags(resource_policy=policy) == {"state", "steering_pull"}

    @pytest.mark.parametrize("state", [{"enable_state": False}, {"state_scopes": []}], ids=["off", "no scope"])
    def test_state_needs_a_scope(self, state: dict[str, Any]) -> None:
        assert "state" not in self.flags(state_policy=state)


# Few ids, so that what is selected, added, denied and there overlaps.
_IDS = st.lists(st.sampled_from("abcde"), max_size=4)
_PERMISSIONS = st.builds(
    AgentRunnerPermissions,
    models=st.lists(st.sampled_from(["invoke", "stream", "rerank"])),
    tools=st.lists(st.sampled_from(["detail", "call"])),
    knowledge_bases=st.lists(st.sampled_from(["list", "retrieve"])),
    storage=st.lists(st.sampled_from(["plugin", "workspace"])),
    files=st.lists(st.sampled_from(["config", "knowledge"])),
)
_CAPABILITIES = st.builds(
    AgentRunnerCapabilities,
    tool_calling=st.booleans(),
    knowledge_retrieval=st.booleans(),
    skill_authoring=st.booleans(),
)
_DENIALS = ("denied_model_uuids", "denied_tool_names", "denied_kb_uuids", "denied_skill_names")
_POLICIES = st.builds(
    ResourcePolicy,
    allowed_model_uuids=st.none() | _IDS,
    allowed_tool_names=st.none() | st.lists(st.sampled_from([*"abcde", "activate"]), max_size=4),
    allowed_kb_uuids=st.none() | _IDS,
    allowed_skill_names=st.none() | _IDS,
    allow_plugin_storage=st.booleans(),
    allow_workspace_storage=st.booleans(),
    **dict.fromkeys(_DENIALS, _IDS),
)
_CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "model": st.fixed_dictionaries({"primary": st.sampled_from("abcde"), "fallbacks": _IDS}),
        "ranker": st.sampled_from("abcde"),
        "bases": _IDS,
        "files": st.lists(st.fixed_dictionaries({"file_key": st.sampled_from("abcde")}), max_size=3),
    },
)


def _entries(entry: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from("abcde"), entry, max_size=5)


_ENTRIES = _entries(st.just(CatalogEntry("n", "t")))
_CATALOGS = st.builds(
    Catalog,
    models=_entries(st.builds(CatalogModel, st.sampled_from(["llm", "rerank"]), st.just("openai"))),
    tools=_ENTRIES,
    knowledge_bases=_ENTRIES,
    skills=_ENTRIES,
    files=_ENTRIES,
    documents=st.dictionaries(
        st.sampled_from(["d1", "d2", "a"]), st.builds(CatalogEntry, kb_id=st.sampled_from("abcde"))
    ),
)


def flat(resources: AgentResources) -> set[tuple[str, str, str]]:
    """Return every grant as kind, id and operation."""
    found = {("model", item.model_id, operation) for item in resources.models for operation in item.operations}
    found |= {("tool", item.tool_name, operation) for item in resources.tools for operation in item.operations}
    found |= {("base", item.kb_id, operation) for item in resources.knowledge_bases for operation in item.operations}
    found |= {("skill", item.skill_name, "activate") for item in resources.skills}
    found |= {("file", item.file_id, operation) for item in resources.files for operation in item.operations}
    return found | {("storage", area, "use") for area, is_open in resources.storage.model_dump().items() if is_open}


class TestProperties:
    @given(_PERMISSIONS, _CAPABILITIES, _POLICIES, _CONFIGS, _CATALOGS)
    def test_grants_are_permitted_undenied_existing_and_never_without_operations(
        self, permissions: Any, capabilities: Any, policy: Any, config: Any, catalog: Any
    ) -> None:
        found = built(ResourceRequest(permissions, capabilities, policy, config, FORM), catalog)
        for items, permitted in (
            (found.models, permissions.models),
            (found.tools, permissions.tools),
            (found.knowledge_bases, permissions.knowledge_bases),
            (found.files, permissions.files),
        ):
            # An empty list would mean all operations of the kind (PROTOCOL 6).
            assert all(item.operations and set(item.operations) <= set(permitted) for item in items)
        for ids, denied, existing in (
            ([item.model_id for item in found.models], policy.denied_model_uuids, catalog.models),
            ([item.tool_name for item in found.tools], policy.denied_tool_names, {"activate", *catalog.tools}),
            ([item.kb_id for item in found.knowledge_bases], policy.denied_kb_uuids, catalog.knowledge_bases),
            ([item.skill_name for item in found.skills], policy.denied_skill_names, catalog.skills),
            ([item.file_id for item in found.files], [], {*catalog.files, *catalog.documents}),
        ):
            assert len(ids) == len(set(ids))
            assert not set(ids) & set(denied)
            assert set(ids) <= set(existing)
        assert capabilities.tool_calling or not found.tools
        assert capabilities.knowledge_retrieval or not found.knowledge_bases
        assert capabilities.skill_authoring or not found.skills

    @given(
        _PERMISSIONS, _CAPABILITIES, _POLICIES, _CONFIGS, _CATALOGS, st.sampled_from(_DENIALS), st.sampled_from("abcde")
    )
    def test_denial_never_adds_anything(
        self, permissions: Any, capabilities: Any, policy: Any, config: Any, catalog: Any, field: str, denied: str
    ) -> None:
        stricter = policy.model_copy(update={field: [*getattr(policy, field), denied]})
        before = built(ResourceRequest(permissions, capabilities, policy, config, FORM), catalog)
        after = built(ResourceRequest(permissions, capabilities, stricter, config, FORM), catalog)
        assert flat(after) <= flat(before)

    @given(_PERMISSIONS, _CAPABILITIES, _POLICIES, _CONFIGS, _CATALOGS)
    def test_everything_granted_was_asked_for(
        self, permissions: Any, capabilities: Any, policy: Any, config: Any, catalog: Any
    ) -> None:
        """What is read from the database for exactly these ids is enough."""
        asked = ResourceRequest(permissions, capabilities, policy, config, FORM)
        query = asked.query
        skills = catalog.skills if query.skills is None else query.skills
        narrowed = Catalog(
            models={id_: row for id_, row in catalog.models.items() if id_ in query.models},
            tools={id_: row for id_, row in catalog.tools.items() if id_ in query.tools},
            knowledge_bases={id_: row for id_, row in catalog.knowledge_bases.items() if id_ in query.knowledge_bases},
            skills={id_: row for id_, row in catalog.skills.items() if id_ in skills},
            files={id_: row for id_, row in catalog.files.items() if id_ in query.files},
            documents={id_: row for id_, row in catalog.documents.items() if row.kb_id in query.documents},
        )
        assert asked.build(narrowed) == asked.build(catalog)


def test_grants_are_stored_as_the_protocol_writes_them() -> None:
    asked = request(config={"model": "gpt", "bases": ["k1"], "files": [{"file_key": "f1"}]})
    document = asked.build(CATALOG)
    assert document == AgentResources.model_validate(document).model_dump(mode="json")


def test_500_grants_keep_their_order() -> None:
    names = [f"m{number}" for number in range(500)]
    catalog = Catalog(models={name: CatalogModel("llm", "openai") for name in reversed(names)})
    found = built(request(allowed_model_uuids=names), catalog)
    assert [model.model_id for model in found.models] == names
