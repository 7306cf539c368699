"""Alembic revisions. A revision imports alembic and sqlalchemy alone, so that it still runs in two years."""
