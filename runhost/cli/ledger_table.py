"""A run's ledger as a table."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby

from rich.table import Table
from rich.text import Text

from runhost.cli.answer_text import part_of, text_of
from runhost.cli.output import cell, new_table, one_line
from runhost.protocol import AgentRunEvent, HostEventType, ResultType

# Of many deltas in a row these many are shown, first and last; all say the same to a person.
FIRST_DELTAS, LAST_DELTAS = 3, 2
MAX_CONTENT_CHARACTERS = 90


def ledger_table(events: Sequence[AgentRunEvent], *, every_row: bool = False, title: str | None = None) -> Table:
    """Return the table of some rows of one run, in order.

    Args:
        events: The rows.
        every_row: Show all deltas, where otherwise long series of them are shortened.
        title: Stands above it.
    """
    table = new_table("#", "after", "attempt", "type", "content", title=title)
    for column, justify in zip(table.columns, ("right", "right", "right", "left", "left"), strict=True):
        column.justify = justify
        column.no_wrap = True
    # On a narrow terminal too, one line is enough for what a row holds: the content takes what the others leave.
    table.expand, table.columns[-1].ratio, table.columns[-1].overflow = True, 1, "ellipsis"
    start = events[0].created_at if events else None
    for event in events if every_row else _shortened(events):
        if isinstance(event, str):
            table.add_row("", "", "", Text(event, style="dim"), "")
        else:
            table.add_row(*_cells(event, start))
    return table


def _shortened(events: Sequence[AgentRunEvent]) -> Iterator[AgentRunEvent | str]:
    """Yield rows, and in the place of some of them a text that says how many."""
    for is_delta, group in groupby(events, key=lambda event: event.type == ResultType.MESSAGE_DELTA):
        rows = list(group)
        left_out = len(rows) - FIRST_DELTAS - LAST_DELTAS
        if is_delta and left_out > 1:
            yield from rows[:FIRST_DELTAS]
            yield f"… {left_out} more"
            yield from rows[-LAST_DELTAS:]
        else:
            yield from rows


def _cells(event: AgentRunEvent, start: datetime | None) -> tuple[str, str, Text, Text, Text]:
    after = "" if start is None else f"{(event.created_at - start).total_seconds():.3f} s"
    style = "dim" if event.source == "host" else ""
    attempt = cell(event.attempt) if event.attempt is not None else Text("")
    return str(event.sequence), after, attempt, Text(one_line(event.type), style=style), Text(_content(event))


def _content(event: AgentRunEvent) -> str:
    data = event.data
    match event.type:
        case ResultType.MESSAGE_DELTA:
            # Quoted, since where a piece begins and ends matters.
            return one_line(json.dumps(text_of(part_of(data, "chunk")), ensure_ascii=False), MAX_CONTENT_CHARACTERS)
        case ResultType.MESSAGE_COMPLETED:
            return one_line(text_of(part_of(data, "message")), MAX_CONTENT_CHARACTERS)
        case ResultType.RUN_FAILED:
            return one_line(f"{data.get('code')}: {data.get('error')}", MAX_CONTENT_CHARACTERS)
        case ResultType.RUN_COMPLETED:
            return one_line(f"{data.get('finish_reason')}{_usage(event)}", MAX_CONTENT_CHARACTERS)
        case HostEventType.RESULT_REJECTED:
            return one_line(str(data.get("reason")), MAX_CONTENT_CHARACTERS)
        case _:
            pairs = (f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in data.items())
            return one_line(" ".join(pairs), MAX_CONTENT_CHARACTERS)


def _usage(event: AgentRunEvent) -> str:
    usage = event.usage
    if usage is None or usage.total_tokens is None:
        return ""
    return f", {usage.prompt_tokens} + {usage.completion_tokens} tokens"
