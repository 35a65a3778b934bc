"""A digest of the code that computes a cell, so that a cell of other code is never taken for a new one.

It is made of the syntax trees of the modules, without docstrings: comments, formatting and prose change nothing.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from functools import cache
from pathlib import Path

from dmin.methods import method_class

# What every cell goes through: episodes, vectors, both stages of the training, scoring.
SHARED = (
    "dmin.data.episodes",
    "dmin.encoder.network",
    "dmin.evaluation.bench",
    "dmin.evaluation.protocol",
    "dmin.training.loop",
    "dmin.training.small_tasks",
    "dmin.training.sources",
    "dmin.training.stage1",
    "dmin.training.stage2",
    "dmin.training.task",
    "dmin.training.train",
    "dmin.training.tuning",
)
# Packages whose modules belong to a method if it imports them, directly or not.
_FOLLOWED = ("dmin.methods.", "dmin.routing", "dmin.adaptive")
# Names, protocols, search spaces: they compute nothing.
_NO_RESULT = ("dmin.methods.registry", "dmin.methods.abilities", "dmin.methods.search_space")


@cache
def code_digest(method: str) -> str:
    """Digest of the code of a method, of what it imports, of the trainer and of the episodes."""
    digest = hashlib.sha256()
    for module in sorted({*SHARED, *modules_of(method)}):
        digest.update(f"{module}:{module_digest(module)}\n".encode())
    return digest.hexdigest()


def modules_of(method: str) -> set[str]:
    """The method's own module, which may be a plugin's, and those of the package that it needs to compute scores."""
    found: set[str] = set()
    waiting = [method_class(method).__module__]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += [
                name for name in _imports(source(module)) if name.startswith(_FOLLOWED) and name not in _NO_RESULT
            ]
    return found


def module_digest(module: str) -> str:
    """Digest of one module's syntax tree, without docstrings."""
    return _text_digest(source(module))


@cache
def _text_digest(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _documented(node):
            node.body = node.body[1:]
        if isinstance(node, ast.Call):  # what may be searched, and what settings begin with, computes nothing
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in ("search", "searched")]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def source(module: str) -> str:
    """The source text of a module, found without importing it again."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(module)
    return Path(found.origin).read_text(encoding="utf-8")


def _documented(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    first = node.body[0] if node.body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


@cache
def _imports(text: str) -> tuple[str, ...]:
    """The modules that a source text imports, wherever in it."""
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return tuple(found)
