"""Opaque cursors: signed, and bound to the query they were made for (D-46)."""

import base64
import binascii
import hashlib
import hmac

import orjson

_MAC_BYTES = 16


class InvalidCursor(ValueError):
    """The cursor was not made by this host, or not for this query."""


class CursorSigner:
    """Makes and reads cursors. All processes of a host share the secret (`stores.host_secrets`)."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, query: str, position: str | int) -> str:
        """Return the cursor of ``position`` in the list that ``query`` describes."""
        body = orjson.dumps(position)
        return _text(self._mac(query, body) + body)

    def read(self, query: str, cursor: str) -> str | int:
        """Return the position behind a cursor.

        Raises:
            InvalidCursor: It was made up, changed, or belongs to another query.
        """
        try:
            raw = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
        except (binascii.Error, ValueError):
            raise InvalidCursor("it is not a cursor of this API") from None
        if _text(raw) != cursor:
            # The decoder passes over characters that it does not know.
            raise InvalidCursor("it is not a cursor of this API")
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(query, body)):
            raise InvalidCursor("it belongs to another query, or was changed")
        position: str | int = orjson.loads(body)
        return position

    def _mac(self, query: str, body: bytes) -> bytes:
        return hmac.digest(self._secret, query.encode() + b"\0" + body, hashlib.sha256)[:_MAC_BYTES]


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def transcript_query(workspace_id: str, conversation_id: str, bot_id: str | None, thread_id: str | None) -> str:
    """Name the list of one conversation's items, for its cursors."""
    return orjson.dumps(["transcript", workspace_id, conversation_id, bot_id, thread_id]).decode()


def event_query(workspace_id: str, conversation_id: str, bot_id: str | None, thread_id: str | None) -> str:
    """Name the list of the events of one conversation, for its cursors."""
    return orjson.dumps(["events", workspace_id, conversation_id, bot_id, thread_id]).decode()
