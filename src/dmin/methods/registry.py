"""Methods by name: they register themselves, in this package or in a plugin.

A plugin is a module or a Python file outside the package that registers a method. It is found by an entry point of the
group `dmin.methods`, by the environment variable `DMIN_PLUGINS`, or by `dmin --plugin`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import re
import sys
import warnings
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from dmin.errors import ConfigError, UnknownNameError, one_line, unknown_name
from dmin.files import user_path
from dmin.methods.base import FewShotMethod

ENTRY_POINTS = "dmin.methods"
PLUGINS_VARIABLE = "DMIN_PLUGINS"  # modules and files, divided like PATH

METHODS: dict[str, type[FewShotMethod]] = {}  # name -> class, in the order of the tables
_loaded: set[str] = set()  # plugins, by module name or absolute path

Method = TypeVar("Method", bound=type[FewShotMethod])


def register(cls: Method) -> Method:
    """Class decorator: make a method known by the name in its traits."""
    if "traits" not in cls.__dict__:
        raise ConfigError(f"{cls.__name__} has no traits: write traits = Traits(name=..., title=...)")
    name = cls.traits.name
    if not re.fullmatch(r"[\w.-]+", name):
        raise ConfigError(f"method name {name!r}: use letters, digits, '.', '-' and '_'")
    if name in METHODS:
        raise ConfigError(f"a method called {name!r} exists already ({METHODS[name].__module__})")
    METHODS[name] = cls
    ordered = sorted(METHODS.items(), key=lambda item: item[1].traits.place)
    METHODS.clear()
    METHODS.update(ordered)
    return cls


def method_class(name: str) -> type[FewShotMethod]:
    """Return a method's class by name; an unknown name is an error with the nearest known one."""
    if name not in METHODS:
        error = unknown_name("method", name, METHODS)
        raise UnknownNameError(f"{error}; --plugin FILE.py brings methods from outside the package")
    return METHODS[name]


def import_all(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that its methods register themselves."""
    for module in pkgutil.iter_modules(path):
        importlib.import_module(f"{package}.{module.name}")


def load_entry_points() -> None:
    """Load the methods of installed packages; one that fails is a warning, so that it cannot break the others."""
    for point in entry_points(group=ENTRY_POINTS):
        key = f"{point.name} = {point.value}"
        if key in _loaded:
            continue
        _loaded.add(key)
        try:
            point.load()
        except Exception as error:  # noqa: BLE001 (foreign code may raise anything)
            warnings.warn(f"the method plugin {key} cannot be loaded: {_reason(error)}", stacklevel=2)


def load_plugins() -> None:
    """Load what `DMIN_PLUGINS` names."""
    for plugin in os.environ.get(PLUGINS_VARIABLE, "").split(os.pathsep):
        if plugin:
            load_plugin(plugin)


def load_plugin(plugin: str | Path) -> None:
    """Load the methods of a Python file or of a module by name; a second time does nothing.

    Raises:
        ConfigError: one line that says why it cannot be loaded.
    """
    is_file = Path(plugin).suffix == ".py"
    key = str(user_path(plugin).resolve()) if is_file else str(plugin)
    if key in _loaded:
        return
    before = set(METHODS)
    try:
        module = _load_file(Path(key)) if is_file else importlib.import_module(key)
    except Exception as error:
        for name in set(METHODS) - before:  # what it registered before it failed
            del METHODS[name]
        raise ConfigError(f"plugin {str(plugin)!r} cannot be loaded: {_reason(error)}") from error
    _loaded.add(key)
    imported_before = any(cls.__module__ == module.__name__ for cls in METHODS.values())
    if set(METHODS) == before and not imported_before:
        raise ConfigError(f"plugin {str(plugin)!r} registers no method: put @register above its class")


def _load_file(path: Path) -> ModuleType:
    name = "dmin_plugin_" + re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise FileNotFoundError("no such file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # as an import does: dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _reason(error: BaseException) -> str:
    """One line that names the kind of error, unless it is one of ours."""
    kinds = () if isinstance(error, ConfigError | FileNotFoundError) else (type(error).__name__,)
    return ": ".join((*kinds, one_line(error)))
