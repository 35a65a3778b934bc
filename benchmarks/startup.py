"""Start-up: `dmin --help` against an empty Python, and what a classifier imports."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.common import Result, middle, ratio, spread, take_turns

REPETITIONS = 9
PROGRAMS = {
    "python -c pass": ["-c", "pass"],
    "dmin --help": ["-m", "dmin", "--help"],
    "import dmin": ["-c", "import dmin"],
    "FewShotClassifier()": ["-c", "import dmin; dmin.FewShotClassifier()"],
}
HEAVY = (
    "torch",
    "transformers",
    "sklearn",
    "scipy",
    "matplotlib",
    "onnxruntime",
    "ray",
    "datasets",
    "pandas",
    "pyarrow",
)


def run(arguments: list[str]) -> str:
    """The output of a Python of its own."""
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True).stdout  # noqa: S603


def imported(program: str) -> list[str]:
    """Which of the heavy packages a program imports."""
    found = run(["-c", f"{program}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])"])
    return found.split()


def main() -> Result:
    """The table."""
    seconds = take_turns({name: lambda _, line=line: run(line) for name, line in PROGRAMS.items()}, REPETITIONS)
    base = seconds["python -c pass"]
    lines = ["| program | ms (min to max) | against an empty Python | heavy packages it imports |", "|---|---|---|---|"]
    figures = {}
    for name, values in seconds.items():
        program = "import dmin.cli" if name == "dmin --help" else PROGRAMS[name][-1]
        packages = imported(program)
        lines.append(
            f"| `{name}` | {spread(values, 1000, 0)} | {ratio(values, base):.1f}x | {', '.join(packages) or 'none'} |"
        )
        figures[name] = {"ms": 1000 * middle(values), "ratio": ratio(values, base), "imports": packages}
    return Result(lines, figures)


if __name__ == "__main__":
    print("\n".join(main().lines))
