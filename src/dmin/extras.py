"""Optional packages: which extra of this package installs what is missing. The one place that knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from dmin.errors import ConfigError

# Top-level modules by the extra that brings them; by the smaller one, where several do.
EXTRAS: dict[str, tuple[str, ...]] = {
    "train": ("torch", "transformers", "accelerate", "matplotlib"),
    "serve": ("fastapi", "uvicorn", "sqlalchemy", "alembic", "psycopg", "prometheus_client", "httpx", "jinja2"),
    "label": ("umap", "sklearn", "scipy"),
    "data": ("datasets", "pyarrow"),
    "onnx": ("onnx", "onnxscript"),
    "peft": ("peft",),
    "ray": ("ray", "fsspec"),
    "static": ("mostlyai",),
    "tensorboard": ("tensorboard",),
}  # fmt: skip


def install_command(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'dmin[{extra}]'"


def missing_extra(error: ModuleNotFoundError, what: str, otherwise: str = "") -> ConfigError | None:
    """The error for a package that an extra brings; None where the package is another one, or is installed.

    Args:
        error: of the import.
        what: what needs it.
        otherwise: another way out.
    """
    name = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in EXTRAS.items() if name in modules), None)
    if extra is None or find_spec(name) is not None:
        return None
    more = f"; {otherwise}" if otherwise else ""
    return ConfigError(f"{what} needs {name}, which is not installed: {install_command(extra)}{more}")


@contextmanager
def needed_for(what: str, otherwise: str = "") -> Iterator[None]:
    """Turn the failed import of an optional package into an error of one line that names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        found = missing_extra(error, what, otherwise)
        if found is None:
            raise
        raise found from error
