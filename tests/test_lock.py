"""The lock files hold every version of constraints.txt that is needed, each with digests, and name no package source."""

from __future__ import annotations

import re
from pathlib import Path

from tools.lock import needed, read_pins

ROOT = Path(__file__).parent.parent
LOCKS = [ROOT / "requirements.lock", ROOT / "requirements-dev.lock"]


def test_locked_versions_are_those_of_the_constraints_and_carry_digests() -> None:
    pins = read_pins(ROOT / "constraints.txt")
    for path in LOCKS:
        for entry in re.split(r"\n(?=[a-z])", path.read_text().split("\n", 1)[1].strip()):
            name, version = re.match(r"([a-z0-9-]+)==(\S+) ", entry).groups()  # type: ignore[union-attr]
            assert pins[name] == version, path.name
            assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), name


def test_locks_hold_all_that_the_package_needs() -> None:
    core, both = read_pins_of(LOCKS[0]), read_pins_of(LOCKS[0]) | read_pins_of(LOCKS[1])
    of_torch = needed("torch")  # its build on this machine may need more, like CUDA
    assert needed("dmin[serve,train]", "hatchling", "editables") - {"dmin"} - of_torch == core - of_torch
    assert needed("dmin[dev]") - {"dmin"} - of_torch <= both


def test_locks_name_no_package_source() -> None:
    for path in LOCKS:
        assert not re.search(r"://|--(extra-)?index|find-links", path.read_text())


def read_pins_of(path: Path) -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+)==", path.read_text(), re.MULTILINE))
