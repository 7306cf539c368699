import ast
import subprocess
import sys
from pathlib import Path

import pytest

from runhost import protocol

# Pydantic and what it is made of; nothing else may come along.
PYDANTIC = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
MODULES = sorted(Path(protocol.__file__).parent.glob("*.py"))
LOADED = """
import sys
before = set(sys.modules)
import runhost.protocol, runhost.protocol.schema
print(*{name.partition(".")[0] for name in set(sys.modules) - before})
"""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_module_imports_stdlib_and_pydantic_only(path: Path) -> None:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level
            imported.add(node.module or "")

    own = {name for name in imported if name.startswith("runhost.protocol") or name == "runhost"}
    assert {name.partition(".")[0] for name in imported - own} <= sys.stdlib_module_names | {
        "pydantic",
        "pydantic_core",
    }


def test_importing_the_package_loads_nothing_else() -> None:
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)

    loaded = {name for name in run.stdout.split() if not name.startswith("_sysconfigdata")}
    assert loaded - sys.stdlib_module_names - PYDANTIC == {"runhost"}
