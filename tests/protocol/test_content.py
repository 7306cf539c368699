import pytest
from pydantic import ValidationError

from runhost.protocol import MAX_INTEGER, ArtifactRef, ContentElement, Message, MessageChunk, ToolCall, Usage


@pytest.mark.parametrize(
    "element",
    [
        {"type": "text", "text": ""},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_base64", "image_base64": "aGk="},
        {"type": "file_url", "file_url": "https://example.org/a.pdf", "file_name": "a.pdf"},
        {"type": "file_base64", "file_base64": "aGk=", "file_name": "a.txt"},
        {"type": "file", "file_base64": "aGk="},
    ],
    ids=lambda element: element["type"],
)
def test_content_element_holds_what_its_type_names(element: dict[str, object]) -> None:
    assert ContentElement.model_validate(element).model_dump(exclude_none=True) == element


@pytest.mark.parametrize("kind", ["text", "image_url", "image_base64", "file_url", "file_base64", "file"])
def test_content_element_without_content_is_refused(kind: str) -> None:
    with pytest.raises(ValidationError, match=f"type {kind} needs"):
        ContentElement.model_validate({"type": kind})


def test_artifact_ref_reads_both_names_and_writes_one() -> None:
    ref = ArtifactRef.model_validate({"artifact_id": "a", "size": 3, "digest": "ff"})

    assert (ref.size_bytes, ref.sha256) == (3, "ff")
    assert ref == ArtifactRef(artifact_id="a", size_bytes=3, sha256="ff")
    assert ref.model_dump(exclude_none=True) == {"artifact_id": "a", "size_bytes": 3, "sha256": "ff"}
    assert ref.model_dump(by_alias=True, exclude_none=True) == ref.model_dump(exclude_none=True)
    assert ArtifactRef.model_validate(ref.model_dump()) == ref


def test_artifact_ref_refuses_unknown_fields() -> None:
    with pytest.raises(ValidationError):
        ArtifactRef.model_validate({"artifact_id": "a", "content": "aGk="})


@pytest.mark.parametrize("content", ["hello", "", None, [{"type": "text", "text": "hello"}]])
def test_message_content_is_text_parts_or_null(content: object) -> None:
    message = Message.model_validate({"role": "assistant", "content": content})

    assert message.model_dump(exclude_none=True).get("content") == content


def test_message_keeps_text_exactly() -> None:
    text = "a\x00b\ud83d 你好"

    assert Message(role="assistant", content=text).content == text


def test_message_with_tool_calls_has_no_content() -> None:
    call = {"id": "c1", "function": {"name": "get_time", "arguments": "{}"}}

    message = Message.model_validate({"role": "assistant", "tool_calls": [call]})

    assert message.tool_calls == [ToolCall.model_validate(call | {"type": "function"})]


def test_chunk_is_an_increment_of_the_first_message_by_default() -> None:
    chunk = MessageChunk(content="hel")

    assert (chunk.mode, chunk.message_index, chunk.role, chunk.is_final) == ("append", 0, "assistant", False)


@pytest.mark.parametrize(
    "chunk",
    [
        {"mode": "merge"},
        {"message_index": -1},
        {"role": "robot"},
        {"content": 1},
        {"is_final": 1},
        {"more": 1},
    ],
    ids=lambda chunk: next(iter(chunk)),
)
def test_chunk_with_wrong_field_is_refused(chunk: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MessageChunk.model_validate(chunk)


def test_default_lists_are_not_shared() -> None:
    assert MessageChunk().artifact_refs is not MessageChunk().artifact_refs


def test_usage_completes_a_missing_or_zero_total() -> None:
    parts = {"prompt_tokens": 3, "completion_tokens": 4}

    assert Usage.model_validate(parts).total_tokens == 7
    assert Usage.model_validate(parts | {"total_tokens": 0}).total_tokens == 7
    assert Usage.model_validate(parts | {"total_tokens": 9}).total_tokens == 9
    assert Usage.model_validate(parts).model_dump(exclude_unset=True)["total_tokens"] == 7
    assert Usage(prompt_tokens=3).total_tokens is None


def test_usage_keeps_what_providers_break_down() -> None:
    sent = {
        "prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": None},
        "output_token_details": {"reasoning": 5},
        "cache_read_input_tokens": 2,
    }

    assert Usage.model_validate(sent | {"queue_time": 0.2}).model_dump(exclude_none=True) == sent


def test_merged_usage_adds_known_and_keeps_unknown_null() -> None:
    one = Usage(prompt_tokens=3, prompt_tokens_details={"cached_tokens": 1, "tier": "a"})
    other = Usage(prompt_tokens=4, completion_tokens=5, prompt_tokens_details={"cached_tokens": 2, "audio": 1})

    total = one.merged(other)

    assert (total.prompt_tokens, total.completion_tokens) == (7, 5)
    assert total.prompt_tokens_details == {"cached_tokens": 3, "tier": "a", "audio": 1}
    assert total.cache_read_input_tokens is None


def test_sum_of_no_usage_is_unknown() -> None:
    assert Usage.sum([]) == Usage()
    assert Usage.sum([Usage(), Usage()]).total_tokens is None


def test_absurd_usage_does_not_break_the_sum() -> None:
    absurd = Usage(prompt_tokens=MAX_INTEGER, completion_tokens=MAX_INTEGER, prompt_tokens_details={"n": MAX_INTEGER})

    total = Usage.sum([absurd, absurd])

    assert total.prompt_tokens == total.total_tokens == MAX_INTEGER
    assert total.prompt_tokens_details == {"n": MAX_INTEGER}
