"""What people hand to commands: as an option's text, in a file, or on standard input."""

import json
import sys
from pathlib import Path
from typing import Any, TypeVar

import typer
from pydantic import BaseModel, ValidationError

from runhost.protocol import describe_validation

STANDARD_INPUT = "-"
# The host takes no larger body.
MAX_BYTES = 4 * 1024 * 1024
# Except where it is a file.
MAX_FILE_BYTES = 10 * 1024 * 1024

Model = TypeVar("Model", bound=BaseModel)


def object_from_text(text: str, option: str) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        typer.BadParameter: It is none.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"no valid JSON: {error}", param_hint=option) from None
    if not isinstance(value, dict):
        raise typer.BadParameter("must be a JSON object, {...}", param_hint=option)
    return value


def object_from_file(path: str, option: str) -> dict[str, Any]:
    """Read a JSON object from a file, or from standard input where the path is ``-``.

    Raises:
        typer.BadParameter: The file cannot be read, or holds no JSON object.
    """
    return object_from_text(text_from_file(path, option), option)


def text_from_file(path: str, option: str) -> str:
    """Read UTF-8 text from a file, or from standard input where the path is ``-``.

    Raises:
        typer.BadParameter: The file cannot be read, or holds something else.
    """
    try:
        return bytes_from_file(path, option).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{path!r} is no UTF-8 text", param_hint=option) from None


def bytes_from_file(path: str, option: str, limit: int = MAX_BYTES) -> bytes:
    """Read a file, or standard input where the path is ``-``.

    Raises:
        typer.BadParameter: The file cannot be read, or exceeds the limit in bytes.
    """
    try:
        if path == STANDARD_INPUT:
            content = sys.stdin.buffer.read(limit + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(limit + 1)
    except OSError as error:
        raise typer.BadParameter(f"{path!r}: {error.strerror}", param_hint=option) from None
    if len(content) > limit:
        raise typer.BadParameter(f"{path!r} exceeds {limit} bytes", param_hint=option)
    return content


def validated(kind: type[Model], fields: dict[str, Any]) -> Model:
    """Build what is sent, before it is sent; unknown fields are refused, as the host does.

    Raises:
        typer.BadParameter: Names the fields at fault.
    """
    try:
        return kind.model_validate(fields, extra="forbid")
    except ValidationError as error:
        raise typer.BadParameter(describe_validation(error)) from None
