"""Cold start: from an empty process to the first answer, on the core install, beside the state before and other libraries.

Each row is a fresh process that learns three classes from six examples and answers one text. "dmin, with torch" is the
same with scores computed by torch, which is imported for it. "dmin, before" is the commit that DMIN_BEFORE names, in
a worktree of its own; without it, the last one before the light runtime (version 0.1). Bytes installed are those of the
environment that the row ran in: the core install, this one with everything, the peers'. Peers are left out where their
environment (benchmarks/peers.py) is not there.

    python -m benchmarks cold_start
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.common import Result, middle, ratio, spread
from benchmarks.peer_environments import ENVIRONMENTS, last_line
from dmin.encoder.carriers import carried_folder

ROOT = Path(__file__).parent.parent
ROUNDS, WARM = 7, 200
BEFORE = os.environ.get("DMIN_BEFORE", "b7f4523")
EXAMPLES = {
    "refund": ["I want my money back", "give me back what I paid"],
    "parcel": ["where is my order", "has my parcel been sent"],
    "weather": ["will it rain", "is it sunny"],
}
TEXT = "when does my package come"
PROGRAMS = {
    "dmin": "from dmin import FewShotClassifier\nmodel = FewShotClassifier().fit(examples)\nanswer = model.predict",
    "dmin, with torch": (
        "from dmin import FewShotClassifier\nmodel = FewShotClassifier(backend='torch').fit(examples)\n"
        "answer = model.predict"
    ),
    "sentence-transformers + logistic regression": (
        "from sentence_transformers import SentenceTransformer\nfrom sklearn.linear_model import LogisticRegression\n"
        "encoder = SentenceTransformer(weights)\n"
        "pairs = [(text, label) for label, texts in examples.items() for text in texts]\n"
        "model = LogisticRegression().fit(encoder.encode([text for text, _ in pairs]), [label for _, label in pairs])\n"
        "answer = lambda texts: model.predict(encoder.encode(texts))"
    ),
    "SetFit, without its training": (
        "from setfit import SetFitModel\nmodel = SetFitModel.from_pretrained(weights)\n"
        "pairs = [(text, label) for label, texts in examples.items() for text in texts]\n"
        "model.model_head.fit(model.model_body.encode([text for text, _ in pairs]), [label for _, label in pairs])\n"
        "answer = lambda texts: model.predict(texts)"
    ),
    "semantic-router with fastembed": (
        "from fastembed import TextEmbedding\nfrom semantic_router import Route\n"
        "from semantic_router.encoders import FastEmbedEncoder\nfrom semantic_router.routers import IndexedRouter\n"
        "class Local(FastEmbedEncoder):\n"
        "    def _initialize_client(self):  # the weights from disk, where it would ask a hub\n"
        "        return TextEmbedding(model_name=self.name, specific_model_path=small)\n"
        "routes = [Route(name=label, utterances=texts) for label, texts in examples.items()]\n"
        "router = IndexedRouter(encoder=Local(), routes=routes)\n"
        "answer = lambda texts: [router(text) for text in texts]"
    ),
}
MEASURE = """
import json, resource, time
examples, text, weights, small, warm = {examples!r}, {text!r}, {weights!r}, {small!r}, {warm}
{program}
answer([text])
used = resource.getrusage(resource.RUSAGE_SELF)
# Not ru_maxrss, which begins with what the process that started this one held.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
found = {{"seconds": used.ru_utime + used.ru_stime, "megabytes": int(peak.split()[1]) / 1024}}
times = []
for number in range(warm):
    start = time.perf_counter()
    answer([f"{{text}} {{number}}"])
    times.append(time.perf_counter() - start)
times.sort()
if times:
    found |= {{"warm": times[len(times) // 2], "slow": times[int(0.99 * len(times))]}}
print(json.dumps(found))
"""


def measure(python: Path, program: str, source: Path | None, warm: int = 0) -> dict[str, float]:
    """One process: processor seconds and megabytes at the first answer, then seconds of a warm text."""
    code = MEASURE.format(
        examples=EXAMPLES, text=TEXT, weights=_weights(), small=str(_small_weights()), program=program, warm=warm
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"HF_HUB_OFFLINE": "1"} | ({"PYTHONPATH": str(source)} if source else {})
    done = subprocess.run(  # noqa: S603 (our own programs)
        [str(python), "-W", "ignore", "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        raise RuntimeError(last_line(done.stderr) or "no output")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _weights() -> str:
    from dmin.encoder.pretrained import embedded_folder

    return str(embedded_folder())


@cache
def _small_weights() -> Path:
    """The weights of the default encoder in a folder as fastembed expects it."""
    folder = Path(tempfile.mkdtemp(prefix="cold-start-weights-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path in carried_folder("bge-small").iterdir():
        name = "model_optimized.onnx" if path.suffix == ".onnx" else path.name
        (folder / name).symlink_to(path)
    return folder


@contextmanager
def core_environment() -> Iterator[Path]:
    """The Python of an environment that holds what `pip install dmin` brings, and dmin itself."""
    with tempfile.TemporaryDirectory(prefix="cold-start-") as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        build = [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            str(folder / "dist"),
            str(ROOT),
        ]
        subprocess.run(build, check=True, capture_output=True)  # noqa: S603
        (wheel,) = (folder / "dist").glob("*.whl")
        pip = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--constraint",
            str(ROOT / "constraints.txt"),
            str(wheel),
        ]
        subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)  # noqa: S603
        yield python


@contextmanager
def state_before() -> Iterator[Path | None]:
    """The sources of the commit before, as a worktree; None where git does not have it."""
    with tempfile.TemporaryDirectory(prefix="cold-start-before-") as name:
        folder = Path(name) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        made = subprocess.run([*git, "add", "--detach", str(folder), BEFORE], capture_output=True, check=False)  # noqa: S603
        try:
            yield folder / "src" if made.returncode == 0 else None
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], capture_output=True, check=False)  # noqa: S603


def installed(python: Path) -> float:
    """Megabytes of the packages in an environment, pip and setuptools apart."""
    found = next(python.parent.parent.glob("lib/python*/site-packages"))
    left_out = ("pip", "setuptools", "pkg_resources")
    files = (path for path in found.rglob("*") if path.is_file() and path.relative_to(found).parts[0] not in left_out)
    return sum(path.stat().st_size for path in files) / 1e6


def peer_python(name: str = "peers") -> Path | None:
    """An environment of peers if it was made already; it is not made for this."""
    place = ENVIRONMENTS[name]
    chosen = os.environ.get(place.variable)
    python = (Path(chosen) if chosen else ROOT / place.folder) / "bin" / "python"
    return python if python.is_file() else None


def commands(core: Path) -> dict[str, dict[str, list[float]]]:
    """Processor and clock seconds of `import dmin`, `dmin --help` and `dmin classify`, in turns with an empty Python."""
    examples = core.parent.parent.parent / "examples.json"
    examples.write_text(json.dumps(EXAMPLES), encoding="utf-8")
    forms = {
        "python -c pass": ["-c", "pass"],
        "import dmin": ["-c", "import dmin"],
        "dmin --help": ["-m", "dmin", "--help"],
        "dmin classify": ["-m", "dmin", "classify", "--examples", str(examples), TEXT],
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    found: dict[str, dict[str, list[float]]] = {name: {"processor": [], "clock": []} for name in forms}
    for turn in range(ROUNDS + 1):
        for name, arguments in forms.items():
            start, used = time.perf_counter(), os.times()
            subprocess.run([str(core), "-I", *arguments], capture_output=True, check=True, env=environment)  # noqa: S603
            now = os.times()
            if turn:  # the first round writes byte code
                spent = now.children_user + now.children_system - used.children_user - used.children_system
                found[name]["processor"].append(spent)
                found[name]["clock"].append(time.perf_counter() - start)
    return found


def main() -> Result:
    """Two tables: first answers, commands."""
    with core_environment() as core, state_before() as before:
        here, peers, fastembed = Path(sys.executable), peer_python(), peer_python("fastembed")
        rows: dict[str, tuple[Path, str, Path | None]] = {"dmin": (core, PROGRAMS["dmin"], None)}
        rows["dmin, with torch"] = (here, PROGRAMS["dmin, with torch"], ROOT / "src")
        if before is not None:
            rows["dmin, before"] = (here, PROGRAMS["dmin"], before)
        if peers is not None:
            rows |= {name: (peers, program, None) for name, program in list(PROGRAMS.items())[2:-1]}
        if fastembed is not None:
            name, program = list(PROGRAMS.items())[-1]
            rows[name] = (fastembed, program, None)
        figures = first_answers(rows)
        lines = _answer_table(figures, {name: installed(python) for name, (python, _, _) in rows.items()})
        spent = commands(core)
    lines += ["", "| command, core install | processor ms | clock ms | processor time against an empty Python |"]
    lines += ["|---|---|---|---|"]
    base = spent["python -c pass"]["processor"]
    for name, found in spent.items():
        lines.append(
            f"| `{name}` | {spread(found['processor'], 1000, 0)} | {spread(found['clock'], 1000, 0)} | "
            f"{ratio(found['processor'], base):.1f}x |"
        )
    return Result(lines, {"answers": figures, "commands": spent})


def first_answers(rows: dict[str, tuple[Path, str, Path | None]]) -> dict[str, dict[str, Any]]:
    """Every row in turns; a row that cannot run is left out, with the reason."""
    figures: dict[str, dict[str, Any]] = {name: {} for name in rows}
    for turn in range(ROUNDS + 1):
        for name, (python, program, source) in rows.items():
            if "failed" in figures[name]:
                continue
            try:
                found = measure(python, program, source, WARM if turn == ROUNDS else 0)
            except RuntimeError as error:
                figures[name] = {"failed": str(error)[:200]}
                continue
            if turn:
                for key, value in found.items():
                    figures[name].setdefault(key, []).append(value)
    return figures


def _answer_table(figures: dict[str, dict[str, Any]], bytes_installed: dict[str, float]) -> list[str]:
    lines = [
        "| first answer | processor s | against dmin | peak MB | against dmin | warm text, ms p50 / p99 | installed MB |",
        "|---|---|---|---|---|---|---|",
    ]
    ours = figures["dmin"]
    for name, found in figures.items():
        if "failed" in found:
            lines.append(f"| {name} | not measured: {found['failed']} | | | | | |")
            continue
        lines.append(
            f"| {name} | {spread(found['seconds'], 1, 2)} | {ratio(found['seconds'], ours['seconds']):.1f}x | "
            f"{middle(found['megabytes']):.0f} | {ratio(found['megabytes'], ours['megabytes']):.1f}x | "
            f"{1000 * found['warm'][0]:.1f} / {1000 * found['slow'][0]:.1f} | {bytes_installed[name]:.0f} |"
        )
    return lines


if __name__ == "__main__":
    print("\n".join(main().lines))
