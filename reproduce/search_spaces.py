"""The declared search spaces of all methods, what a search chose, and the sweep around it, as Markdown tables.

python -m reproduce.search_spaces                                       # the spaces
python -m reproduce.search_spaces reproduce/search/paper/settings.yaml  # what was chosen, and the sweep
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from dmin.methods import METHODS


def table() -> str:
    """One line per method: its trials, each setting with the values that are tried, and what only the sweep tries."""
    lines = [
        "| method | trials | settings that are tried, the default first | only in the sweep |",
        "|---|---|---|---|",
    ]
    for name, method in METHODS.items():
        space = method.traits.search
        tried, beyond = (
            "; ".join(f"`{_short(key)}` " + ", ".join(_value(value) for value in values) for key, values in choices)
            for choices in (space.choices, space.beyond)
        )
        lines.append(f"| `{name}` | {min(space.trials, space.size)} | {tried} | {beyond} |")
    return "\n".join(lines)


def chosen_table(path: Path) -> str:
    """One line per method: trials, accuracy on validation episodes by default and as chosen, the gain, what differs."""
    tried = settings_tried(path.parent / "trials.json")
    lines = [
        "| method | trials | tried in all | default | chosen | gain | what differs from the default |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in yaml.safe_load(path.read_text(encoding="utf-8"))["methods"].items():
        differs = ", ".join(f"`{_short(key)}` {_value(value)}" for key, value in row["changed"].items()) or "nothing"
        accuracies = [f"{100 * row[key]:.1f}" for key in ("default_accuracy", "validation_accuracy")]
        gain = f"{100 * row['gain']:+.1f} ± {100 * row['gain_ci95']:.1f}"
        counts = f"{row['trials']} | {tried[name]}"
        lines.append(f"| `{name}` | {counts} | {' | '.join(accuracies)} | {gain} | {differs} |")
    return "\n".join(lines)


def settings_tried(trials: Path) -> Counter[str]:
    """How many different settings of each method were measured, by trials and sweep."""
    names = json.loads(trials.read_text(encoding="utf-8"))["cells"]  # as 'dmin banking77 5-way 1-shot {settings}'
    return Counter(method for method, _ in {(name.split()[0], name.split(" ", 4)[4]) for name in names})


def sweep_table(path: Path) -> str:
    """One line per method that was swept: values tried around the choice, the highest gain, whether one is beyond doubt."""
    lines = ["| method | values around the choice | highest gain | by | beyond its interval |", "|---|---|---|---|---|"]
    for name, row in yaml.safe_load(path.read_text(encoding="utf-8"))["methods"].items():
        if "sweep" not in row:
            continue
        around = row["sweep"]["around"]
        best = max(around, key=lambda trial: trial["gain"])
        by = ", ".join(f"`{_short(key)}` {_value(value)}" for key, value in best["changed"].items())
        gain = f"{100 * best['gain']:+.2f} ± {100 * best['gain_ci95']:.2f}"
        lines.append(f"| `{name}` | {len(around)} | {gain} | {by} | {'none' if row['sweep']['settled'] else 'yes'} |")
    return "\n".join(lines)


def _short(key: str) -> str:
    return key.removeprefix("options.")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    given = [Path(name) for name in sys.argv[1:]]
    print("\n\n".join([chosen_table(given[0]), sweep_table(given[0])]) if given else table())
