"""Every module of the pure and the use case rooms has a test module of its name: ``python tools/tests_mirror.py``.

Looked at are ``domain/`` and ``app/`` of the server and all of the wire. A module that only declares (data classes,
protocols, names) needs none. In a package the test may bear the name of the package.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path


def untested(root: Path) -> list[str]:
    """The modules without a test, as paths below ``root``."""
    return [
        str(module.relative_to(root))
        for package in sorted((root / "services").glob("*/bothy_*"))
        for module in sorted(package.rglob("*.py"))
        if _mirrored(module.relative_to(package), package.name)
        and _behaves(ast.parse(module.read_text()))
        and not _tested(module, package)
    ]


def _mirrored(module: Path, package: str) -> bool:
    rooms = module.parts[1:2]
    return module.name != "__init__.py" and (package == "bothy_wire" or rooms in {("domain",), ("app",)})


def _behaves(node: ast.AST) -> bool:
    """Whether something is computed: a function that is more than its docstring, outside protocols."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.ClassDef(bases=bases) if any(ast.unparse(base).startswith("Protocol") for base in bases):
                continue
            case ast.ClassDef():
                if _behaves(child):
                    return True
            case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
                if not all(isinstance(line, ast.Expr) for line in body):
                    return True
    return False


def _tested(module: Path, package: Path) -> bool:
    names = {f"test_{module.stem}.py"}
    if module.parent != package and module.parent.name not in {"domain", "app"}:
        names.add(f"test_{module.parent.name}.py")
    feature = module.relative_to(package).parts[0]
    found = [test for test in (package.parent / "tests").rglob("test_*.py") if test.name in names]
    namesakes = [other for other in package.rglob(module.name) if other != module]
    return any(not namesakes or feature in test.parts or feature in test.stem for test in found)


def main() -> int:
    """The exit status: 1 when a module has no test."""
    missing = untested(Path())
    for name in missing:
        print(f"{name}: no test module of this name")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
