"""Which of the worker's variables a program gets to see: named ones only (SECURITY G-4)."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

USUAL: Final = ("PATH", "HOME", "LANG", "TZ", "TMPDIR")
"""What every program gets, with all `LC_*`."""

NETWORK: Final = frozenset(
    {
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    }
)

_ON_REQUEST: Final = re.compile(r"RUNNER_[A-Z0-9_]+|([A-Z][A-Z0-9_]*_)?API_KEY")


def may_ask_for(name: str) -> bool:
    """Tell whether a manifest may name this variable.

    Those are `API_KEY`, what ends in `_API_KEY`, what starts with `RUNNER_`, proxies and certificates: names that an
    operator gives to runners on purpose. The worker's own settings (`RUNHOST_*`), tokens and database addresses
    have other names, whatever a manifest says.
    """
    return not name.startswith("RUNHOST_") and (name in NETWORK or _ON_REQUEST.fullmatch(name) is not None)


def program_environment(asked: Iterable[str], worker: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Build the whole environment of a program.

    Args:
        asked: names out of its manifest; what the worker does not have is left out.
        worker: environment of the worker.
    """
    names = [*USUAL, *(name for name in worker if name.startswith("LC_")), *filter(may_ask_for, asked)]
    found = {name: worker[name] for name in names if name in worker}
    # The lines are UTF-8 whatever the worker's own locale is.
    return {"LANG": "C.UTF-8"} | found
