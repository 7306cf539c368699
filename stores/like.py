"""Patterns for LIKE and ILIKE."""


def containing(text: str) -> str:
    r"""Return the pattern of texts that contain ``text`` as it stands; the escape is ``\``, Postgres's default."""
    for special in "\\%_":
        text = text.replace(special, "\\" + special)
    return f"%{text}%"
