"""Methods register themselves, keep the order of the tables, and come from outside the package too."""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
import torch

from dmin.errors import ConfigError, UnknownNameError
from dmin.methods import METHODS, FewShotMethod, Nearest, Traits, create, load_plugin, register, registry
from dmin.methods.base import RESERVED

PLUGIN = '''
from dmin.methods import Nearest, Traits, register


@register
class Mine(Nearest):
    """Nearest prototypes, under another name."""

    traits = Traits(name="mine", title="My method", meta_trained=False)
'''
DOCS = Path(__file__).parents[2] / "docs" / "reference" / "methods.md"


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(registry, "_loaded", set())
    before = dict(METHODS)
    yield
    METHODS.clear()
    METHODS.update(before)


def plugin(folder: Path, text: str = PLUGIN) -> Path:
    path = folder / "mine.py"
    path.write_text(text)
    return path


def test_methods_stand_in_the_order_of_the_tables() -> None:
    assert list(METHODS) == [
        "finetune", "ataml", "relation", "induction", "hatt", "lwof", "dmin", "dmin-plus", "prototypical", "matching",
        "nearest", "logistic",
    ]  # fmt: skip
    for name, method in METHODS.items():
        assert (method.name, method.title, method.inputs) == (name, method.traits.title, method.traits.inputs)


def test_traits_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Nearest.traits.title = "other"  # type: ignore[misc]


def test_a_registered_method_finds_its_place() -> None:
    @register
    class Early(FewShotMethod):
        traits = Traits(name="early", title="Early", place=45)

    @register
    class Late(FewShotMethod):
        traits = Traits(name="late", title="Late")

    names = list(METHODS)
    assert names.index("induction") + 1 == names.index("early") == names.index("hatt") - 1
    assert names[-1] == "late"
    with pytest.raises(NotImplementedError, match="Late has no forward"):
        Late()(torch.zeros(1, 1, 2), torch.zeros(1, 2))


def test_a_name_belongs_to_one_method_and_suits_a_file_name() -> None:
    with pytest.raises(ConfigError, match=r"'nearest' exists already \(dmin.methods.nearest\)"):
        register(type("Other", (FewShotMethod,), {"traits": Traits(name="nearest", title="Other")}))
    with pytest.raises(ConfigError, match="method name 'a,b'"):
        register(type("Other", (FewShotMethod,), {"traits": Traits(name="a,b", title="Other")}))
    with pytest.raises(ConfigError, match="Other has no traits"):
        register(type("Other", (Nearest,), {}))


@pytest.mark.parametrize("as_module", [False, True])
def test_a_plugin_brings_a_method(as_module: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = plugin(tmp_path)
    if as_module:
        monkeypatch.syspath_prepend(str(tmp_path))
        shutil.copy(path, tmp_path / f"{tmp_path.name.replace('-', '_')}.py")
    given = tmp_path.name.replace("-", "_") if as_module else str(path)
    load_plugin(given)
    load_plugin(given)  # a second time does nothing
    assert list(METHODS)[-1] == "mine"
    support, query = torch.randn(3, 2, 8), torch.randn(4, 8)
    assert torch.equal(create("mine", 8, way=3, shot=2)(support, query), Nearest()(support, query))


def test_plugins_come_from_the_environment_and_from_installed_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DMIN_PLUGINS", str(plugin(tmp_path)))
    registry.load_plugins()
    assert "mine" in METHODS
    (tmp_path / "installed_mine.py").write_text(PLUGIN.replace('"mine"', '"installed"'))
    (tmp_path / "broken_mine.py").write_text("1 / 0\n")
    information = tmp_path / "mine-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[dmin.methods]\ngood = installed_mine:Mine\nbad = broken_mine\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(UserWarning, match="bad = broken_mine cannot be loaded: ZeroDivisionError: division by zero"):
        registry.load_entry_points()
    assert "installed" in METHODS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def broken(:\n", "SyntaxError: invalid syntax"),
        ("import no_such_module_here\n", "ModuleNotFoundError: No module named 'no_such_module_here'"),
        ("raise ValueError('first line\\nsecond line')\n", "ValueError: first line second line$"),
        ("x = 1\n", "registers no method: put @register above its class"),
        (PLUGIN.replace('"mine"', '"dmin"'), "a method called 'dmin' exists already"),
        (PLUGIN + "raise RuntimeError('after it registered')\n", "RuntimeError: after it registered"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_one_line_and_leaves_nothing(text: str, message: str, tmp_path: Path) -> None:
    before = dict(METHODS)
    path = plugin(tmp_path, text)
    with pytest.raises(ConfigError, match=message) as caught:
        load_plugin(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    assert before == METHODS


def test_a_missing_plugin_is_named() -> None:
    with pytest.raises(ConfigError, match="plugin 'no/such.py' cannot be loaded: no such file"):
        load_plugin("no/such.py")
    with pytest.raises(ConfigError, match="plugin 'no_such_module' cannot be loaded: ModuleNotFoundError"):
        load_plugin("no_such_module")


def test_an_unknown_method_names_the_nearest_one_and_the_option_for_others() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'nearest'.*--plugin"):
        create("neerest", 4, way=2, shot=1)


def test_the_documentation_has_every_method_with_its_title_rate_and_options() -> None:
    """The overview on the page follows the registry."""
    text = DOCS.read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[`([\w-]+)`\]\(#\1\) \| (.*?) \| (.*?) \| .*? \| (.*?) ?\| ", text, re.MULTILINE)
    assert [name for name, *_ in rows] == list(METHODS)
    for name, title, learns, rate in rows:
        traits = METHODS[name].traits
        assert title == ", ".join(filter(None, (traits.title, traits.frozen_title)))
        assert learns.startswith("yes" if traits.meta_trained else "no")
        assert not traits.meta_trained or float(rate) == traits.learning_rate
        section = text.split(f"{{ #{name} }}")[1].split("\n## ")[0]
        parameters = inspect.signature(METHODS[name].__init__).parameters
        for option in set(parameters) - RESERVED - {"args", "kwargs"}:
            assert f"`{option}`" in section or "training.md#options-of-dmin" in section, (name, option)
