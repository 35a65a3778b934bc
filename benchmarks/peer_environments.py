"""The environments of the peers: made once, from exact versions, apart from the one of dmin."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
WORKER = Path(__file__).with_name("peer_worker.py")


class PeerError(Exception):
    """A peer that could not be installed or run; the message is one line for the table."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment beside .venv, or the one that a variable names."""

    folder: str
    requirements: str
    variable: str

    @property
    def versions(self) -> str:
        """The text of its requirements."""
        return Path(__file__).with_name(self.requirements).read_text(encoding="utf-8")

    def python(self) -> Path:
        """The interpreter, after the environment was made if it is not there or its requirements changed."""
        chosen = os.environ.get(self.variable)
        folder = Path(chosen) if chosen else ROOT / self.folder
        interpreter = folder / "bin" / "python"
        if chosen:
            if not interpreter.is_file():
                raise PeerError(f"{self.variable} names no virtual environment")
            return interpreter
        digest = hashlib.sha256(self.versions.encode()).hexdigest()
        mark = folder / "installed"
        if not mark.is_file() or mark.read_text() != digest:
            source = str(Path(__file__).with_name(self.requirements))
            run([sys.executable, "-m", "venv", "--clear", str(folder)])
            run([str(interpreter), "-m", "pip", "install", "--quiet", "--requirement", source])
            mark.write_text(digest)
        return interpreter


ENVIRONMENTS = {
    "peers": Environment(".venv-peers", "peers.txt", "DMIN_PEERS"),
    "bertopic": Environment(".venv-peers-bertopic", "peers-bertopic.txt", "DMIN_PEERS_BERTOPIC"),
    "fastembed": Environment(".venv-peers-fastembed", "peers-fastembed.txt", "DMIN_PEERS_FASTEMBED"),
    "fastfit": Environment(".venv-peers-fastfit", "peers-fastfit.txt", "DMIN_PEERS_FASTFIT"),
}


def work(environment: str | None, job: Mapping[str, Any], threads: int) -> dict[str, Any]:
    """The worker's result for a job, from a fresh process of an environment (of this one, if None), offline."""
    python = ENVIRONMENTS[environment].python() if environment else Path(sys.executable)
    kept = {key: value for key, value in os.environ.items() if environment is None or key != "PYTHONPATH"}
    offline = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": str(threads)}
    found: dict[str, Any] = json.loads(run([str(python), str(WORKER)], json.dumps(job), {**kept, **offline}))
    return found


def run(command: list[str], given: str = "", variables: Mapping[str, str] | None = None) -> str:
    """What a command printed; a failure is a `PeerError` with its last line."""
    done = subprocess.run(  # noqa: S603 (our own words)
        command, input=given, env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise PeerError(last_line(done.stderr) or f"ended with code {done.returncode}")
    return done.stdout


def last_line(text: str) -> str:
    """The last line that says something, without the folders of this machine."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    without = re.sub(r"\(?(?<![\w:/])/[^\s)'\"]+\)?", "", lines[-1] if lines else "")
    return re.sub(r"\s+", " ", without).strip()[:200]
