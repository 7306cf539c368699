"""Health check of an API container: exits 0 when the API of this container can serve requests.

Ready means that the database answers. Temporal may be away: events are taken in all the same.
"""

import os
import sys
from http.client import HTTPConnection, HTTPException

TIMEOUT_SECONDS = 4.0
DEFAULT_PORT = 8080
OK = 200


def is_ready(port: int) -> bool:
    """Ask the API on this machine whether it is ready."""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(not is_ready(int(os.environ.get("RUNHOST_API_PORT", DEFAULT_PORT))))
