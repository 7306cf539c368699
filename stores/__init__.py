"""Tables and one store per aggregate.

A store is built from a connection and never commits: the caller (one request, one activity) owns the
transaction. Rows stay inside this folder; stores take and return domain values.
"""
