"""What an agent's config selects, read by the form that its runner describes (HOST 6.2, D-12)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import TypeAdapter, ValidationError

from runhost.protocol import Identifier, JsonObject, JsonValue

NOTHING_SELECTED: Final = frozenset({"", "__none__", "__none"})
"""What a form writes where nothing is selected."""

_identifier = TypeAdapter[str](Identifier)


@dataclass(frozen=True)
class SelectedFile:
    """A file field. Name and type are what the form noted when the file was put in; None where it did not."""

    file_id: str
    file_name: str | None = None
    mime_type: str | None = None


@dataclass
class Selected:
    """The ids that a config selects, each once, in the order of the form, a primary before its fallbacks.

    ``files`` are by their ids.
    """

    llm_models: list[str] = field(default_factory=list[str])
    rerank_models: list[str] = field(default_factory=list[str])
    knowledge_bases: list[str] = field(default_factory=list[str])
    files: dict[str, SelectedFile] = field(default_factory=dict[str, SelectedFile])


def read_selectors(runner_config: JsonObject, config_schema: Sequence[Mapping[str, JsonValue]]) -> Selected:
    """Return what the selectors of a form hold.

    A field that is not in the config has its item's `default`; one that is there counts as it is, null too.
    What does not have the shape of its item selects nothing, and so does text that can be no id: a config is
    stored as it was posted, and its form may have changed since.

    Args:
        runner_config: Values by the names of their items.
        config_schema: Items of the form, as `AgentRunnerDescriptor.config_schema` keeps them.
    """
    selected = Selected()
    for item in config_schema:
        name, type_ = item.get("name"), item.get("type")
        if not isinstance(name, str) or not isinstance(type_, str):
            continue
        read = _READERS.get(type_)
        if read is not None:
            read(selected, runner_config.get(name, item.get("default")))
    return Selected(
        unique(selected.llm_models),
        unique(selected.rerank_models),
        unique(selected.knowledge_bases),
        selected.files,
    )


def unique(ids: Iterable[str]) -> list[str]:
    """Keep the first occurrence of each id."""
    return list(dict.fromkeys(ids))


def _read_models(selected: Selected, value: JsonValue) -> None:
    if isinstance(value, dict):
        selected.llm_models += _ids([value.get("primary")])
        selected.llm_models += _ids(value.get("fallbacks"))
    else:
        selected.llm_models += _ids([value])


def _read_model(selected: Selected, value: JsonValue) -> None:
    selected.llm_models += _ids([value])


def _read_rerank_model(selected: Selected, value: JsonValue) -> None:
    selected.rerank_models += _ids([value])


def _read_knowledge_bases(selected: Selected, value: JsonValue) -> None:
    selected.knowledge_bases += _ids(value)


def _read_file(selected: Selected, value: JsonValue) -> None:
    if not isinstance(value, dict):
        return
    for file_id in _ids([value.get("file_key") or value.get("file_id")]):
        name, type_ = value.get("file_name") or value.get("name"), value.get("mime_type") or value.get("mimetype")
        file = SelectedFile(file_id, name if isinstance(name, str) else None, type_ if isinstance(type_, str) else None)
        selected.files.setdefault(file_id, file)


def _read_files(selected: Selected, value: JsonValue) -> None:
    for entry in value if isinstance(value, list) else ():
        _read_file(selected, entry)


def _ids(values: JsonValue) -> Iterator[str]:
    for value in values if isinstance(values, list) else ():
        if isinstance(value, str) and value not in NOTHING_SELECTED and _can_be_id(value):
            yield value


def _can_be_id(value: str) -> bool:
    # NUL and the like would not even get as far as a lookup: Postgres refuses them in a parameter.
    try:
        _identifier.validate_python(value)
    except ValidationError:
        return False
    return True


# With the aliases of HOST 6.2. A prompt editor holds text and selects nothing.
_READERS: Final[Mapping[str, Callable[[Selected, JsonValue], None]]] = {
    "model-fallback-selector": _read_models,
    "llm-model-selector": _read_model,
    "select-llm-model": _read_model,
    "rerank-model-selector": _read_rerank_model,
    "knowledge-base-multi-selector": _read_knowledge_bases,
    "select-knowledge-bases": _read_knowledge_bases,
    "file": _read_file,
    "array[file]": _read_files,
}
