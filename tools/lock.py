"""Write requirements.lock: every version of constraints.txt with the SHA-256 of each file that pip may choose for it.

    python -m tools.lock

The files and their digests come from wherever pip is set up to look; the lock names no such place. Run it after a change of
constraints.txt. `make` installs by it with --require-hashes.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path
from typing import Any

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

CONSTRAINTS, LOCK = Path("constraints.txt"), Path("requirements.lock")
HEADER = "# Made by `python -m tools.lock` from constraints.txt: do not edit. Installed with --require-hashes.\n"


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
            if parse(link.filename)[:2] != (name, Version(version)):
                continue
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


def main() -> None:
    """Write the lock."""
    from pip._internal.commands.install import InstallCommand

    command = InstallCommand("lock", "")
    options, _ = command.parse_args([])
    lines = []
    with command._build_session(options) as session:
        collector = command._build_package_finder(options, session)._link_collector
        for name, version in read_pins().items():
            found = sorted(digests(collector, name, version))
            if not found:
                sys.exit(f"no file of {name}=={version} carries a SHA-256")
            lines.append(" \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{digest}" for digest in found)]))
    LOCK.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{LOCK}: {len(lines)} packages")


if __name__ == "__main__":
    main()
