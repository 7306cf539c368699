"""What a config selects, by the form of its runner (HOST 6.2, D-12)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.selectors import Selected, SelectedFile, read_selectors
from runhost.protocol import MAX_ID_LENGTH


def form(*items: tuple[str, str], **defaults: Any) -> list[dict[str, Any]]:
    """Return a form of items, each a name and a type; ``defaults`` are by name."""
    return [
        {"name": name, "type": type_} | ({"default": defaults[name]} if name in defaults else {})
        for name, type_ in items
    ]


def test_models_come_in_the_order_of_the_form_primary_first_and_once() -> None:
    config = {
        "second": "b",
        "first": {"fallbacks": ["f1", "a", "f2"], "primary": "a"},
        "third": "f2",
    }
    schema = form(("first", "model-fallback-selector"), ("second", "llm-model-selector"), ("third", "select-llm-model"))
    assert read_selectors(config, schema).llm_models == ["a", "f1", "f2", "b"]


def test_fallback_selector_takes_the_primary_alone() -> None:
    assert read_selectors({"m": "a"}, form(("m", "model-fallback-selector"))).llm_models == ["a"]


def test_rerank_models_and_bases_are_read_under_their_aliases() -> None:
    config = {"r": "ranker", "k": ["k1", "k2", "k1"], "old": ["k3", "k2"]}
    schema = form(
        ("r", "rerank-model-selector"), ("k", "knowledge-base-multi-selector"), ("old", "select-knowledge-bases")
    )
    selected = read_selectors(config, schema)
    assert (selected.rerank_models, selected.knowledge_bases) == (["ranker"], ["k1", "k2", "k3"])
    assert selected.llm_models == []


@pytest.mark.parametrize(
    ("type_", "default", "found"),
    [
        ("model-fallback-selector", {"primary": "a", "fallbacks": ["b"]}, ("llm_models", ["a", "b"])),
        ("llm-model-selector", "a", ("llm_models", ["a"])),
        ("rerank-model-selector", "a", ("rerank_models", ["a"])),
        ("knowledge-base-multi-selector", ["a"], ("knowledge_bases", ["a"])),
        ("file", {"file_key": "a"}, ("files", {"a": SelectedFile("a")})),
        ("array[file]", [{"file_key": "a"}], ("files", {"a": SelectedFile("a")})),
    ],
)
def test_selector_without_a_value_has_its_default(type_: str, default: Any, found: tuple[str, Any]) -> None:
    """D-12."""
    schema = form(("x", type_), x=default)
    assert getattr(read_selectors({}, schema), found[0]) == found[1]
    nothing = read_selectors({"x": None}, schema)
    assert not getattr(nothing, found[0])


@pytest.mark.parametrize("nothing", ["", "__none__", "__none"])
def test_words_for_nothing_select_nothing(nothing: str) -> None:
    schema = form(("m", "model-fallback-selector"), ("r", "rerank-model-selector"), ("k", "select-knowledge-bases"))
    config = {"m": {"primary": nothing, "fallbacks": [nothing, "b"]}, "r": nothing, "k": [nothing, "k"]}
    selected = read_selectors(config, schema)
    assert (selected.llm_models, selected.rerank_models, selected.knowledge_bases) == (["b"], [], ["k"])


def test_files_have_either_name_of_each_field_and_come_once() -> None:
    config = {
        "one": {"file_key": "a", "file_name": "a.txt", "mime_type": "text/plain"},
        "many": [{"file_id": "b", "name": "b.txt", "mimetype": "text/csv"}, {"file_key": "a"}, {"file_key": "c"}],
    }
    files = read_selectors(config, form(("one", "file"), ("many", "array[file]"))).files
    assert list(files.values()) == [
        SelectedFile("a", "a.txt", "text/plain"),
        SelectedFile("b", "b.txt", "text/csv"),
        SelectedFile("c"),
    ]


@pytest.mark.parametrize("value", ["nul\x00", "lone \ud800", "x" * (MAX_ID_LENGTH + 1), 7, True, ["a"], {"a": 1}])
def test_text_that_can_be_no_id_selects_nothing(value: Any) -> None:
    """A config is stored as it was posted (D-31); what Postgres refuses must not reach it."""
    selected = read_selectors(
        {"m": value, "k": [value], "f": {"file_key": value}},
        form(("m", "llm-model-selector"), ("k", "select-knowledge-bases"), ("f", "file")),
    )
    assert selected == Selected()


def test_other_items_select_nothing() -> None:
    schema = [*form(("p", "prompt-editor"), ("t", "string")), {"type": "llm-model-selector"}, {"name": "p"}]
    config = {"p": [{"role": "system", "content": "a"}], "t": "a"}
    selected = read_selectors(config, schema)
    assert selected == Selected()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)
_TYPES = st.sampled_from(
    ["model-fallback-selector", "rerank-model-selector", "select-knowledge-bases", "file", "array[file]", "x"]
)


@given(
    config=st.dictionaries(st.sampled_from("abc"), _JSON),
    schema=st.lists(
        st.fixed_dictionaries({"name": st.sampled_from("abc"), "type": _TYPES}, optional={"default": _JSON})
    ),
)
def test_any_config_under_any_form_is_read(config: Any, schema: Any) -> None:
    selected = read_selectors(config, schema)
    for ids in (selected.llm_models, selected.rerank_models, selected.knowledge_bases):
        assert len(ids) == len(set(ids))
        assert all(ids)
