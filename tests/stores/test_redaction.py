"""Inline content reaches neither event log nor transcript (PM-13, HOST 9.3)."""

from typing import Any

import pytest

from runhost.protocol import AgentInput, Message
from stores.redaction import inline_contents, linked_contents, redact_elements, redact_message

CANARY = "Y2FuYXJ5"
INLINE: dict[str, dict[str, Any]] = {
    "image": {"type": "image_base64", "image_base64": CANARY},
    "file": {"type": "file_base64", "file_base64": CANARY, "file_name": "f"},
    "file of either kind": {"type": "file", "file_base64": CANARY},
    "data url in base64": {"type": "image_base64", "image_base64": f"data:image/png;base64,{CANARY}"},
    "data url as an image address": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{CANARY}"}},
    "data url as a file address": {"type": "file_url", "file_url": f" DATA:;charset=x;BASE64,{CANARY}"},
    "beside a text": {"type": "text", "text": "look", "image_base64": CANARY},
    "not base64": {"type": "image_base64", "image_base64": f"{CANARY}?"},
}


@pytest.mark.parametrize("element", INLINE.values(), ids=INLINE)
def test_pm_13_inline_content_is_taken_out(element: dict[str, Any]) -> None:
    message = Message.model_validate({"role": "assistant", "content": [element]})
    assert isinstance(message.content, list)
    for shown in (redact_elements(message.content)[0], redact_message(message)["content"][0]):
        assert CANARY not in str(shown)
        assert shown["content_redacted"] is True
        assert shown["type"] == element["type"]
        assert shown.get("text") == element.get("text")


def test_addresses_and_text_stay() -> None:
    elements = [
        {"type": "text", "text": "data:,x"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a?x=data:b"}},
    ]
    input_ = AgentInput.model_validate({"contents": elements})
    assert redact_elements(input_.contents) == elements
    assert inline_contents(input_) == []
    assert [link.url for link in linked_contents(input_)] == ["https://example.com/a?x=data:b"]


@pytest.mark.parametrize(
    ("address", "mime_type", "content"),
    [
        ("data:text/plain;base64,YWI=", "text/plain", b"ab"),
        ("data:;base64,YWI=", None, b"ab"),
        ("data:,a%20b", None, b"a b"),
        ("data:text/plain;charset=utf-8,%E6%97%A5", "text/plain", "日".encode()),
    ],
)
def test_data_url_is_decoded(address: str, mime_type: str | None, content: bytes) -> None:
    (found,) = inline_contents(AgentInput.model_validate({"contents": [{"type": "file_url", "file_url": address}]}))
    assert (found.artifact_type, found.mime_type, found.content) == ("file", mime_type, content)


@pytest.mark.parametrize("address", ["data:;base64,?", "data:;base64,日本", "data:", "data:;base64", "data:;base64,YQ"])
def test_what_cannot_be_decoded_is_no_content(address: str) -> None:
    assert inline_contents(AgentInput.model_validate({"contents": [{"type": "file_url", "file_url": address}]})) == []
