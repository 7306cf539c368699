"""The run-scoped host API: one gate that every call of a runner passes, and the methods behind it (PROTOCOL 9)."""
