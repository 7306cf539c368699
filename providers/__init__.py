"""Clients of what the host calls for a run: models and tools."""
