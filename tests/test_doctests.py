"""The examples in the docstrings of the public modules run and print what they say."""

from __future__ import annotations

import doctest
import importlib
from types import ModuleType

import pytest

# The module that *defines* the object: doctest passes over what a package only imports.
MODULES = (
    "dmin",
    "dmin.classifier.few_shot",
    "dmin.encoder.encoder",
    "dmin.encoder.opening",
    "dmin.files.names",
    "dmin.labelling.suggestions",
    "dmin.routing.algorithm",
    "dmin.training.config",
)


def examples(module: ModuleType) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder().find(module, module.__name__) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    found = examples(importlib.import_module(name))
    assert found, f"{name} has no example: take it off the list, or write one"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    told: list[str] = []
    for test in found:
        runner.run(test, out=told.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(told)


def test_no_example_is_forgotten() -> None:
    """A docstring with an example stands in a module of the list."""
    import pkgutil

    import dmin

    with_examples = {
        module.name
        for module in pkgutil.walk_packages(dmin.__path__, "dmin.")
        if not module.name.endswith("__main__")
        and ".migrations" not in module.name
        and examples(importlib.import_module(module.name))
    }
    assert with_examples <= set(MODULES)
