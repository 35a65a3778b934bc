"""Write the lock files: versions of constraints.txt with the SHA-256 of each file that pip may choose for them.

    python -m tools.lock

`requirements.lock` holds what the package, its service and its training need, `requirements-dev.lock` what development
needs besides. Which package needs which is read from the environment that runs this: run it in `.venv`, after `make lint`.
The digests come from wherever pip is set up to look; the locks name no such place. `make` installs by them with
--require-hashes.
"""

from __future__ import annotations

import hashlib
import re
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

CONSTRAINTS, LOCK, DEV_LOCK = Path("constraints.txt"), Path("requirements.lock"), Path("requirements-dev.lock")
HEADER = "# Made by `python -m tools.lock` from constraints.txt: do not edit. Installed with --require-hashes.\n"
BUILD = ("hatchling", "editables")  # build the package itself, without a download of their own


def read_pins(path: Path = CONSTRAINTS) -> dict[str, str]:
    """Name -> version of every pinned package."""
    pins = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(r"([A-Za-z0-9._-]+)==([^\s#;]+).*", line.strip()):
            pins[re.sub(r"[-_.]+", "-", found[1]).lower()] = found[2]
    return pins


def digests(collector: Any, name: str, version: str) -> set[str]:
    """SHA-256 of every file of one version: wheels for every system, or the source archive where there is no wheel."""
    files = {"wheel": set[str](), "source": set[str]()}
    for link in links(collector, name):
        try:
            parse = parse_wheel_filename if link.is_wheel else parse_sdist_filename
            found_name, found_version = parse(link.filename)[:2]
            if found_name != name or found_version.public != Version(version).public:
                continue  # (a local build, like 2.13.0+cpu, is of the same version)
        except (InvalidWheelFilename, InvalidSdistFilename):
            continue
        found = link.hash if link.hash_name == "sha256" else None
        if found is None and link.is_file:
            with Path(link.file_path).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        if found:
            files["wheel" if link.is_wheel else "source"].add(found)
    return files["wheel"] or files["source"]


def links(collector: Any, name: str) -> list[Any]:
    """Every file that pip finds for a package, whatever the system and the version of Python."""
    from pip._internal.index.collector import parse_links

    found: list[Any] = []

    def read_page(address: Any) -> list[Any]:
        response = collector.fetch_response(address)
        found.extend(parse_links(response) if response is not None else [])
        return []

    sources = collector.collect_sources(project_name=name, candidates_from_page=read_page)
    for source in (*sources.find_links, *sources.index_urls):
        if source is not None:
            list(source.page_candidates())
            found.extend(source.file_links())
    return found


def needed(*roots: str) -> set[str]:
    """Names of everything that some requirements bring along in this environment, themselves included."""
    found: set[str] = set()
    waiting = [(Requirement(root), "") for root in roots]
    while waiting:
        requirement, asked_by = waiting.pop()
        name = canonicalize_name(requirement.name)
        key = f"{name}[{','.join(sorted(requirement.extras))}]"
        if key in found:
            continue
        found |= {key, name}
        try:
            parts = requires(name) or []
        except PackageNotFoundError:
            sys.exit(f"{name}, which {asked_by} needs, is not installed here: run this in .venv after make lint")
        for extra in ("", *requirement.extras):
            inner = [Requirement(part) for part in parts]
            waiting += [(part, name) for part in inner if part.marker is None or part.marker.evaluate({"extra": extra})]
    return {name for name in found if "[" not in name}


def main() -> None:
    """Write both locks."""
    from pip._internal.commands.install import InstallCommand

    pins = read_pins()
    core = needed("dmin[serve,train]", *BUILD) - {"dmin"}
    extra = needed("dmin[dev]") - core - {"dmin"}
    if missing := sorted((core | extra) - set(pins)):
        sys.exit(f"{CONSTRAINTS} has no version of: {', '.join(missing)}")
    command = InstallCommand("lock", "")
    options, _ = command.parse_args([])
    with command._build_session(options) as session:
        collector = command._build_package_finder(options, session)._link_collector
        for path, names in ((LOCK, core), (DEV_LOCK, extra)):
            lines = []
            for name in sorted(names):
                found = sorted(digests(collector, name, pins[name]))
                if not found:
                    sys.exit(f"no file of {name}=={pins[name]} carries a SHA-256")
                lines.append(" \\\n    ".join([f"{name}=={pins[name]}", *(f"--hash=sha256:{each}" for each in found)]))
            path.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
            print(f"{path}: {len(lines)} packages")


if __name__ == "__main__":
    main()
