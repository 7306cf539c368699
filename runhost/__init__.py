"""A durable agent host: one event becomes one durable run that anyone can follow."""

__version__ = "0.1.0"
