"""Keys of cells follow the code that computes them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dmin.evaluation import code_digest as module
from dmin.evaluation.code_digest import SHARED, code_digest, module_digest, modules_of
from dmin.evaluation.comparison_plan import ComparisonPlan, standard_rows
from dmin.methods import METHODS
from dmin.training import load_config


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    code_digest.cache_clear()
    yield
    code_digest.cache_clear()


def keys() -> dict[str, str]:
    code_digest.cache_clear()
    plan = ComparisonPlan(load_config(), ("starter",), (None,), standard_rows(tuple(METHODS)), (5,), (1,))
    return {prepared.job.row.name: prepared.key for prepared in plan.prepare()}


def change(monkeypatch: pytest.MonkeyPatch, changed: str, added: str) -> None:
    usual = module.source
    monkeypatch.setattr(module, "source", lambda name: usual(name) + (added if name == changed else ""))


def different(monkeypatch: pytest.MonkeyPatch, changed: str, added: str = "\nEXTRA = 1\n") -> set[str]:
    before = keys()
    with monkeypatch.context() as patched:
        change(patched, changed, added)
        after = keys()
    return {name for name in before if before[name] != after[name]}


def test_a_changed_method_changes_its_own_keys_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    assert different(monkeypatch, "dmin.methods.matching") == {"matching"}
    assert different(monkeypatch, "dmin.methods.dmin") == {"dmin"}
    assert different(monkeypatch, "dmin.methods.relation_module") == {"relation", "induction"}
    assert different(monkeypatch, "dmin.methods.dmin_gram") == {"dmin"}
    assert "dmin" in different(monkeypatch, "dmin.routing.algorithm")


@pytest.mark.parametrize("shared", ["dmin.training.stage2", "dmin.data.episodes"])
def test_the_trainer_and_the_episodes_change_all_keys(monkeypatch: pytest.MonkeyPatch, shared: str) -> None:
    assert shared in SHARED and different(monkeypatch, shared) == set(METHODS)


def test_what_a_search_chose_changes_keys_by_the_settings_alone() -> None:
    one, other = (
        module._text_digest(f"traits = Traits(name='a', searched={value})") for value in ("()", "(('b', 1),)")
    )
    assert one == other != module._text_digest("traits = Traits(name='b', searched=())")


def test_comments_and_docstrings_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert different(monkeypatch, "dmin.methods.dmin", "\n# a comment\n") == set()
    texts = {
        "a": '"""One."""\nclass A:\n    """Two."""\n    x = 1\ndef f():\n    """Three."""\n    return 1\n',
        "b": '"""Other."""\nclass A:\n    """Words."""\n    x = 1  # why\n\n\ndef f():\n    return 1\n',
        "c": '"""One."""\nclass A:\n    """Two."""\n    x = 2\ndef f():\n    """Three."""\n    return 1\n',
    }
    monkeypatch.setattr(module, "source", texts.__getitem__)
    assert module_digest("a") == module_digest("b") != module_digest("c")
    texts |= {"d": "t = Traits(name='x', search=(1, 2))", "e": "t = Traits(name='x')", "f": "t = Traits(name='y')"}
    assert module_digest("d") == module_digest("e") != module_digest("f")


def test_what_a_method_is_made_of() -> None:
    assert {"dmin.methods.dmin", "dmin.methods.base", "dmin.routing.algorithm"} <= modules_of("dmin")
    assert "dmin.methods.registry" not in modules_of("nearest")
    assert "dmin.methods.dmin" not in modules_of("nearest") and "dmin.methods.search_space" not in modules_of("dmin")
