"""The HTTP API (API.md): it parses, authorizes, makes one store call or one Temporal call, and answers."""
