"""Run the sessions in the documentation and compare, or replace, the output that the pages show.

    python -m tools.doc_outputs                 compare all pages, quick sessions only; exit code 1 where one is stale
    python -m tools.doc_outputs --write         replace stale output
    python -m tools.doc_outputs --slow [PAGE]   also sessions that train or compare (minutes)

A session is a fenced block (sh or console) whose first line begins with `$ `. The sessions of a page run in order, in one
folder that holds the files of `prepare`. A line `...` stands for lines left out. A comment `<!-- before: COMMAND -->` runs
a command that the page does not show.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = tuple(sorted(path for path in (ROOT / "docs").rglob("*.md") if "\n$ " in path.read_text(encoding="utf-8")))
BLOCK = re.compile(r"^(?:<!-- before: (?P<before>.*?) -->\n+)?```(?:sh|console)\n(?P<body>\$ .*?)^```$", re.M | re.S)
NUMBER = re.compile(r"[-+]?\d+\.\d+")
SLOW = re.compile(r"dmin (train|compare|ablate|evaluate|figure|demo)\b")
MESSY = """text,label,source
where is my parcel,delivery,mail
Where is  my parcel,delivery,chat
the package has not come yet,delivery,mail
I want my money back,refund,mail
please return what I paid,refund,chat
please return what I paid,complaint,chat
this is not good enough,complaint,mail
"""


@dataclass(frozen=True)
class Step:
    """One command of a session, and the output that the page shows."""

    command: str
    told: str

    @property
    def slow(self) -> bool:
        """Does it train or compare? An error that is shown comes at once."""
        return bool(SLOW.search(self.command)) and not self.told.startswith("error:")


def steps(body: str) -> list[Step]:
    """The commands of a block; a command may go on after a backslash."""
    parts = re.split(r"^\$ ", body, flags=re.M)[1:]
    found = []
    for part in parts:
        lines = part.split("\n")
        last = next(number for number, line in enumerate(lines) if not line.endswith("\\"))
        found.append(Step("\n".join(lines[: last + 1]), "\n".join(lines[last + 1 :])))
    return found


def prepare(folder: Path) -> None:
    """Write the files that the pages speak of."""
    from dmin.data import load_corpus, seeded_split

    for name in ("intents.yaml", "mails.csv"):
        shutil.copy(ROOT / "examples/inbox" / name, folder)
    (folder / "messy.csv").write_text(MESSY, encoding="utf-8")
    (folder / "cols.csv").write_text("utterance,intent\nmy parcel,delivery\nmy money,refund\n", encoding="utf-8")
    starter = load_corpus("starter")
    rows = list(zip(starter.texts, starter.labels, strict=True))
    with (folder / "requests.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("utterance", "intent"), *rows])
    (folder / "mine").mkdir()
    lines = [json.dumps({"text": text, "label": label}) + "\n" for text, label in rows]
    (folder / "mine/texts.jsonl").write_text("".join(lines), encoding="utf-8")
    split = starter.splits["novel14"]
    first = {"train": list(split.train), "valid": list(split.valid), "test": list(split.test)}
    small = {**first, "train": list(split.train)[:20]}
    (folder / "mine/class_splits.json").write_text(json.dumps({"first": first, "small": small}), encoding="utf-8")
    (folder / "three").mkdir()
    shutil.copy(folder / "mine/texts.jsonl", folder / "three")
    drawn = {f"seed{seed}": asdict(seeded_split(starter.classes, seed)) for seed in (1, 2, 3)}
    (folder / "three/class_splits.json").write_text(json.dumps(drawn), encoding="utf-8")


class Shell:
    """Runs commands in one folder; `export` lasts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {key: value for key, value in os.environ.items() if not key.startswith("DMIN_")}
        paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
        self.environment = {**kept, "COLUMNS": "80", "PYTHONPATH": paths, "DMIN_CACHE": str(folder / ".vectors")}

    def run(self, command: str) -> str:
        """What a command prints, errors included; notes on standard error are left out."""
        if match := re.fullmatch(r"export (\w+)=(\S+)", command):
            self.environment[match[1]] = match[2]
            return ""
        called = re.sub(r"(?:^|(?<= ))dmin(?= [a-z])", f"{sys.executable} -m dmin", command)
        done = subprocess.run(
            ["/bin/bash", "-c", called],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        errors = [line for line in done.stderr.splitlines() if line.startswith(("error:", "Traceback"))]
        return done.stdout + "".join(f"{line}\n" for line in errors)


def same(told: str, found: str) -> bool:
    """Equal but for white space, seconds, and the rounding of a last digit."""
    if told.split(" answered in")[0].strip() == found.split(" answered in")[0].strip():
        return True
    one, two = (NUMBER.sub("#", " ".join(line.split())) for line in (told, found))
    values = zip(map(float, NUMBER.findall(told)), map(float, NUMBER.findall(found)), strict=False)
    return one == two and all(abs(a - b) <= 0.011 * max(1.0, abs(a)) for a, b in values)


def agrees(told: str, found: str) -> bool:
    """Is what a page shows what was printed? Between lines with `...` anything may stand."""
    shown = [line for line in told.splitlines() if line.strip()]
    printed = [line for line in found.splitlines() if line.strip()]
    if "..." not in map(str.strip, shown):
        return len(shown) == len(printed) and all(map(same, shown, printed))
    rest = iter(printed)
    return all(any(same(line, other) for other in rest) for line in shown if line.strip() != "...")


def renewed(told: str, found: str) -> str:
    """The output as the page should show it; where lines are left out, the others are found again by their words."""
    if "..." not in map(str.strip, told.splitlines()):
        return found
    printed, lines = found.splitlines(), []
    for line in told.splitlines():
        shape = NUMBER.sub("#", " ".join(line.split()))
        near = [other for other in printed if NUMBER.sub("#", " ".join(other.split())) == shape]
        lines.append(near[0] if near else line)
    return "\n".join(lines) + "\n"


def check_page(page: Path, *, slow: bool, write: bool) -> Iterator[str]:
    """Run a page's sessions; yield a message for each output that is stale."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        prepare(Path(scratch))
        shell = Shell(Path(scratch))
        for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
            found = steps(block["body"])
            if (any(step.slow for step in found) or SLOW.search(block["before"] or "")) and not slow:
                continue
            if block["before"]:
                shell.run(block["before"])
            fresh = []
            for step in found:
                printed = shell.run(step.command)
                stale = not agrees(step.told, printed)
                fresh.append(f"$ {step.command}\n{renewed(step.told, printed) if stale else step.told}")
                if stale:
                    yield f"{page.relative_to(ROOT)}: {step.command}\n{printed}"
            text = text.replace(block["body"], "".join(fresh))
    if write:
        page.write_text(text, encoding="utf-8")


def main() -> int:
    """Compare or replace; the exit code is 1 where something was stale."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES)
    parser.add_argument("--write", action="store_true", help="replace stale output")
    parser.add_argument("--slow", action="store_true", help="also run sessions that train or compare")
    given = parser.parse_args()
    stale = [
        message for page in given.pages for message in check_page(page.resolve(), slow=given.slow, write=given.write)
    ]
    print("\n".join(stale) or "every output is up to date")
    return 1 if stale and not given.write else 0


if __name__ == "__main__":
    sys.exit(main())
