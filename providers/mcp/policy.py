"""Which programs this host starts as tool servers: none, unless its operator allows them (SECURITY, stdio)."""

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from providers.errors import ArgumentRefused, NotConfigured

SETTING: Final = "RUNHOST_MCP_STDIO_COMMANDS"

# What programs need to find their way, and nobody's secret.
_INHERITED: Final = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "TMPDIR", "TZ")

# Variables that make a program load or run something else than the operator allowed.
_REFUSED_NAMES: Final = re.compile(
    r"PATH|HOME|SHELL|IFS|ENV|BASH_ENV|TMPDIR|CDPATH|PS4|PROMPT_COMMAND|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH"
    r"|(?:LD|DYLD|PYTHON|NODE|NPM|RUBY|PERL|JAVA|GIT|SSL|UV|PIP|PIPX|YARN|PNPM|BUN|DENO|GCONV|GLIBC|MALLOC|DOTNET|LUA"
    r"|PHP|OPENSSL|XDG|CORECLR)(?:_.*|[A-Z0-9]*)",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class StdioPolicy:
    """The command lines that an operator allows.

    Attributes:
        commands: Each the beginning of a command line: `("uvx", "mcp-server-time")` allows that program with any
            further arguments, `("npx",)` whatever npx can run.
    """

    commands: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Self:
        """Read command lines as a shell splits them; empty ones are left out.

        Raises:
            ValueError: One cannot be split, such as for a quote without its end.
        """
        return cls(tuple(command for line in lines if (command := tuple(shlex.split(line)))))

    def resolve(self, command: Sequence[str]) -> list[str]:
        """Return the command with the whole path of its program.

        Raises:
            NotConfigured: It is not allowed, or not installed.
        """
        if not command or not any(tuple(command[: len(allowed)]) == allowed for allowed in self.commands):
            shown = shlex.join(command)[:200]
            raise NotConfigured(
                f"This host may not start {shown!r} as a tool server; its operator can allow it in {SETTING}."
            )
        program = shutil.which(command[0])
        if program is None:
            raise NotConfigured(f"The program {command[0]!r} of the tool server is not installed on this host.")
        return [program, *command[1:]]


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server: a few variables of this process, and those of its address.

    Raises:
        ArgumentRefused: One of those is no name, or could make the allowed program run another one.
    """
    inherited = {name: value for name in _INHERITED if (value := os.environ.get(name)) is not None}
    for name, value in given.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise ArgumentRefused(f"env.{name[:60]}", "is no name, or holds a value, that an environment can have")
        if _REFUSED_NAMES.fullmatch(name):
            raise ArgumentRefused(f"env.{name}", "could make the program run something else; take it out")
    return inherited | dict(given)
