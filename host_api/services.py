"""What the methods of the host API work with; built once per process and handed down."""

from dataclasses import dataclass
from pathlib import Path

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine

from stores.cursors import CursorSigner


@dataclass(frozen=True)
class HostServices:
    """What a process gives to the host API.

    Attributes:
        engine: The database, for what is not called a thousand times a second.
        pool: The same database past SQLAlchemy, for the statements on the path of every call.
        cursors: Signs and reads cursors.
        host_version: What `get_langbot_version` answers.
        file_root: Folder that file artifacts must lie in; None where there are none.
    """

    engine: AsyncEngine
    pool: asyncpg.Pool
    cursors: CursorSigner
    host_version: str
    file_root: Path | None = None
