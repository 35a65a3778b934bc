"""Build the distributions and their SBOM, install the wheel into a clean environment, run the README's example there.

`make release-check` calls this. The files stay in dist/, ready for upload.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What the package cannot work without and a wrong setting of the build would leave out.
WHEEL_FILES = (
    "dmin/py.typed",
    "dmin/cli/__init__.py",
    "dmin/model/shipped/head.json",
    "dmin/model/shipped/head.safetensors",
    "dmin/data/starter/class_splits.json",
)
SDIST_FILES = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CITATION.cff",
    "constraints.txt",
    "requirements.lock",
    "tests/conftest.py",
)


def python_example(markdown: str) -> str:
    """Return the first Python block of a Markdown page."""
    found = re.search(r"^```python\n(.*?)^```", markdown, re.DOTALL | re.MULTILINE)
    if found is None:
        raise ValueError("the page has no ```python block")
    return found[1]


def promised_lines(code: str) -> list[str]:
    """Return the outputs that the code promises: what stands in a comment behind `print(...)` and begins with a bracket."""
    return re.findall(r"^print\(.*\)  # (\[.*)$", code, re.MULTILINE)


def missing(wanted: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the wanted files that are not among the names of an archive."""
    there = set(names)
    return [name for name in wanted if name not in there]


def run(command: list[str], **options: object) -> str:
    """Run a command, stop here if it fails, and return what it printed."""
    print("$", " ".join(Path(part).name if os.sep in part else part for part in command), flush=True)
    finished = subprocess.run(command, text=True, stdout=subprocess.PIPE, **options)  # type: ignore[call-overload]
    if finished.returncode:
        print(finished.stdout, end="")
        sys.exit(f"error: {Path(command[0]).name} ended with code {finished.returncode}")
    return str(finished.stdout)


def build(folder: Path) -> tuple[Path, Path]:
    """Build (sdist, wheel) into an emptied folder, the wheel from the sdist, with the pinned build backend."""
    shutil.rmtree(folder, ignore_errors=True)
    environment = {**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], env=environment)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def check_contents(sdist: Path, wheel: Path) -> None:
    """Stop if a file that users need is not in the archives."""
    with zipfile.ZipFile(wheel) as archive:
        lost = missing(WHEEL_FILES, archive.namelist())
    with tarfile.open(sdist) as archive:
        inside = [name.partition("/")[2] for name in archive.getnames()]  # without the folder NAME-VERSION
    lost += missing(SDIST_FILES, inside)
    if lost:
        sys.exit(f"error: not in the distributions: {', '.join(lost)}")


def clean_environment(folder: Path, wheel: Path) -> Path:
    """Install the wheel and its dependencies, and nothing else, into a new environment; return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    run([*pip, "--constraint", str(ROOT / "constraints.txt"), str(wheel)])
    run([str(python), "-m", "pip", "check"])
    return python


def bill_of_materials(folder: Path, version: str) -> Path:
    """Write the SBOM (CycloneDX) of what requirements.lock installs beside the distributions."""
    path = folder / f"dmin-{version}.cdx.json"
    run([
        sys.executable, "-W", "ignore", "-m", "cyclonedx_py", "requirements", str(ROOT / "requirements.lock"),
        "--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library", "--output-reproducible", "-o", str(path),
    ])  # fmt: skip
    return path


def run_example(python: Path, code: str, folder: Path) -> str:
    """Run code far from the repository and without a network; stop if it does not print what its comments promise."""
    (folder / "example.py").write_text(code, encoding="utf-8")
    kept: Mapping[str, str] = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DMIN_"))
    }
    environment = {**kept, "HF_HUB_OFFLINE": "1", "DMIN_CACHE": str(folder / "cache")}
    printed = run([str(python), "-I", "example.py"], cwd=folder, env=environment)
    for line in promised_lines(code):
        if line not in printed.splitlines():
            sys.exit(f"error: the README's example did not print {line!r}, but:\n{printed}")
    return printed


def main() -> None:
    """Run all steps; the first that fails ends the check with code 1."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    sdist, wheel = build(ROOT / "dist")
    check_contents(sdist, wheel)
    with tempfile.TemporaryDirectory(prefix="release-check-") as name:
        python = clean_environment(Path(name) / "venv", wheel)
        example = python_example((ROOT / "README.md").read_text(encoding="utf-8"))
        print(run_example(python, example, Path(name)), end="")
        version = run([str(python), "-I", "-m", "dmin", "--version"], cwd=name).strip()
    bill = bill_of_materials(ROOT / "dist", version.split()[-1])
    print(
        f"{version}: {sdist.name}, {wheel.name} and {bill.name} are in dist/, and the README's example runs from the wheel"
    )


if __name__ == "__main__":
    main()
