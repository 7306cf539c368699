"""Ledger rows as the bytes that readers get."""

import json
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from sqlalchemy import RowMapping

from api.frames import Frames, frame
from runhost.protocol import AgentRunEvent
from stores.identifiers import new_uuid
from stores.ledger import read_document, read_event


def row(sequence: int = 1, **more: Any) -> RowMapping:
    """Return a row as the database gives it."""
    fields = {
        "run_id": new_uuid(),
        "sequence": sequence,
        "type": "message.delta",
        "data": {},
        "created_at": datetime(2026, 11, 30, tzinfo=UTC),
        "source": "runner",
        "source_sequence": None,
        "attempt": 1,
        "usage": None,
        "artifact_refs": None,
        "metadata": None,
    }
    return cast("RowMapping", fields | more)


def data_of(sent: bytes) -> Any:
    return json.loads(next(line for line in sent.split(b"\n") if line.startswith(b"data: ")).removeprefix(b"data: "))


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"usage": {"prompt_tokens": 3, "total_tokens": 5}},
        {"artifact_refs": [{"artifact_id": "a1", "sha256": "00"}], "metadata": {"a": 1}},
        {"data": {"text": "line\nbreaks\r\u2028 lone \ud800"}, "usage": {"total_tokens": 1}},
    ],
    ids=["plain", "usage", "artifacts", "text"],
)
def test_frame_holds_the_event_that_the_store_reads(more: dict[str, Any]) -> None:
    stored = row(**more)
    sent = frame(read_document(stored))
    assert AgentRunEvent.model_validate(data_of(sent)) == read_event(stored)
    assert sent.count(b"\n") == 4
    assert b"\r" not in sent


@pytest.mark.parametrize(("type_", "name"), [("a.b", b"a.b"), ("a\nid: 7", b"a?id: 7"), ("\ud800\x00é", b"???")])
def test_name_of_an_unknown_type_stays_on_its_line(type_: str, name: bytes) -> None:
    sent = frame(read_document(row(type=type_)))
    assert sent.split(b"\n")[:2] == [b"id: 1", b"event: " + name]
    assert data_of(sent)["type"] == type_


def test_rows_behind_a_position_are_cut_off_exactly() -> None:
    frames = Frames([read_document(row(sequence)) for sequence in (5, 6, 7)])
    assert (frames.first, frames.last, len(frames)) == (5, 7, 3)
    assert frames.behind(4) == frames.data
    assert [frames.behind(position).count(b"id: ") for position in (4, 5, 6)] == [3, 2, 1]
    assert frames.behind(6).startswith(b"id: 7\n")


@pytest.mark.parametrize(("types", "is_end"), [(["x", "host.run_ended"], True), (["host.run_ended", "x"], False)])
def test_stream_ends_with_the_row_that_ends_the_run(types: list[str], is_end: bool) -> None:
    assert Frames([read_document(row(n, type=type_)) for n, type_ in enumerate(types, 1)]).is_end is is_end
