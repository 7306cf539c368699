"""Column types and the naming convention that all tables share."""

from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Identity, MetaData, String, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator

from runhost.protocol import MAX_ID_LENGTH
from stores.escaping import escape, restore

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class EscapedText(TypeDecorator[str]):
    """Text from outside, of any length, stored exactly (D-31)."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Escape on the way in."""
        return None if value is None else escape(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:
        """Restore on the way out."""
        return None if value is None else restore(value)


# Types come from a function where SQLAlchemy keeps state per column, from a constant where it does not.
ID = String(MAX_ID_LENGTH)
KIND = String(50)
EVENT_TYPE = String(100)
UUID = Uuid(as_uuid=True)
TIME = DateTime(timezone=True)
JSON = JSONB(none_as_null=True)
COUNT = BigInteger


def always() -> Identity:
    """A position that the database gives, rising over all rows of a table."""
    return Identity(always=True)
