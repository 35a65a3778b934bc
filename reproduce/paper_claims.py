"""The paper's claims, cell by cell: is one row better than another, on the same class splits of the same set?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from dmin.evaluation.raw import RawCell
from dmin.evaluation.statistics import ALPHA
from reproduce.paper_plan import SETS, SETTINGS, TUNED, is_published

Setting = tuple[int, int]
Means = dict[tuple[str, str, str, Setting], float]  # set, split, row, setting -> mean accuracy over seeds


@dataclass(frozen=True)
class Claim:
    """ "better" is better than "worse"."""

    better: str
    worse: str
    about: str


ORDERING = (
    Claim("dmin", "lwof", "DMIN above LwoF"),
    Claim("dmin", "hatt", "DMIN above HATT"),
    Claim("dmin", "induction", "DMIN above Ind. Net"),
    Claim("lwof", "relation", "LwoF above Rel. Net"),
    Claim("hatt", "relation", "HATT above Rel. Net"),
    Claim("induction", "relation", "Ind. Net above Rel. Net"),
    Claim("relation", "ataml", "Rel. Net above ATAML"),
    Claim("ataml", "finetune", "ATAML above fine-tuning (BERT in the paper; the head alone on a frozen encoder here)"),
)
ABLATION = (
    Claim("dmin", "without-dmm", "DMM helps: DMIN above DMIN without DMM"),
    Claim("dmin", "without-qim", "QIM helps: DMIN above DMIN without QIM"),
    Claim("dmin", "iterations-1", "three rounds above one"),
    Claim("dmin", "iterations-2", "three rounds above two"),
    Claim("dmin", "static-memory", "dynamic above static: DMM's couplings change above couplings at their first value"),
)
PLAIN = (
    Claim("dmin", "nearest", "DMIN above the nearest prototype, which trains nothing"),
    Claim("dmin", "logistic", "DMIN above logistic regression on the support"),
    Claim("dmin-plus", "dmin", "DMIN-plus above DMIN"),
    Claim("dmin-plus", "matching", "DMIN-plus above Matching"),
    Claim("dmin-plus", "logistic", "DMIN-plus above logistic regression on the support"),
)
TUNED_CLAIMS = tuple(
    Claim(better + TUNED, worse + TUNED, about)
    for better, worse, about in (
        ("dmin", "lwof", "DMIN above LwoF"),
        ("dmin", "induction", "DMIN above Ind. Net"),
        ("dmin", "prototypical", "DMIN above Prototypical"),
        ("dmin", "without-dmm", "DMM helps: DMIN above DMIN without DMM"),
        ("dmin-4", "without-dmm-4", "DMM helps with 4 capsules in both modules"),
        ("dmin", "dmin-4", "the searched capsules above 4 in both modules"),
        ("dmin-plus", "dmin", "DMIN-plus above DMIN"),
    )
)


def means(cells: Sequence[RawCell]) -> Means:
    """The mean accuracy of every set, split, row and setting, over the seeds that are there."""
    found: dict[tuple[str, str, str, Setting], list[float]] = {}
    for cell in cells:
        accuracies = cell.result().accuracies
        place = (cell.data, cell.split, cell.row.name, (cell.way, cell.shot))
        found.setdefault(place, []).append(sum(accuracies) / len(accuracies))
    return {place: sum(values) / len(values) for place, values in found.items()}


def differences(found: Means, claim: Claim) -> dict[tuple[str, Setting], list[float]]:
    """better - worse on each split that has both, by set and setting."""
    gained: dict[tuple[str, Setting], list[float]] = {}
    for (data, split, row, setting), mean in found.items():
        other = found.get((data, split, claim.worse, setting))
        if row == claim.better and other is not None:
            gained.setdefault((data, setting), []).append(mean - other)
    return gained


@dataclass(frozen=True)
class Verdict:
    """How a claim did over the sets."""

    holds: int
    cells: int
    gain: float  # mean over the cells
    sets: int
    p_value: float  # Wilcoxon's signed-rank test over the sets, one-tailed; NaN with fewer than five sets


def verdict(gained: dict[tuple[str, Setting], list[float]]) -> Verdict:
    """Count the cells, and test over the sets: cells of one set are not independent (hwu64 and liu54 share texts, too)."""
    cells = {place: float(np.mean(values)) for place, values in gained.items()}
    by_set = [np.mean([gain for (data, _), gain in cells.items() if data == one]) for one in SETS if _has(cells, one)]
    enough = len(by_set) >= 5 and any(by_set)
    p_value = float(stats.wilcoxon(by_set, alternative="greater").pvalue) if enough else float("nan")
    return Verdict(
        sum(gain > 0 for gain in cells.values()), len(cells), float(np.mean(list(cells.values()))), len(by_set), p_value
    )


def _has(cells: dict[tuple[str, Setting], float], data: str) -> bool:
    return any(place[0] == data for place in cells)


def claim_lines(found: Means, claim: Claim) -> list[str]:
    """The claim's verdict and its differences in points, set by set."""
    gained = differences(found, claim)
    if not gained:
        return [f"**{claim.about}**: no cell has both rows yet.", ""]
    said = verdict(gained)
    over = f"; over the {said.sets} sets p = {said.p_value:.3f}" if said.sets >= 5 else ""
    held = f"holds in {said.holds} of {said.cells} cells, mean difference {100 * said.gain:+.1f} points{over}"
    lines = [
        f"**{claim.about}**: {held}.",
        "",
        "| | " + " | ".join(f"{way}-way {shot}-shot" for way, shot in SETTINGS) + " |",
        "|---|" + "---:|" * len(SETTINGS),
    ]
    for data in SETS:
        shown = [gained.get((data, setting)) for setting in SETTINGS]
        if any(shown):
            lines.append(f"| {data} | " + " | ".join("" if not x else f"{100 * np.mean(x):+.1f}" for x in shown) + " |")
    return [*lines, ""]


def answer(gained: dict[tuple[str, Setting], list[float]]) -> str:
    """Does a claim hold? Said only where a test over at least five sets says so."""
    if not gained:
        return "not measured yet"
    there, turned = verdict(gained), verdict({place: [-gain for gain in values] for place, values in gained.items()})
    if there.sets < 5:
        return f"not decided ({there.sets} of {len(SETS)} sets measured)"
    if there.p_value < ALPHA:
        return "holds"
    return "does not hold: the opposite does" if turned.p_value < ALPHA else "not shown, in neither direction"


def summary(cells: Sequence[RawCell]) -> str:
    """One line per claim, for the front page."""
    found = means(cells)
    lines = ["| claim | holds in | mean difference | over the sets |", "|---|---:|---:|---|"]
    for claim in (*ORDERING, *ABLATION, *PLAIN):
        gained = differences(found, claim)
        if not gained:
            lines.append(f"| {claim.about} | | | not measured yet |")
            continue
        said = verdict(gained)
        tested = f" (p = {said.p_value:.3f}, {said.sets} sets)" if said.sets >= 5 else ""
        shown = f"{said.holds} of {said.cells} cells | {100 * said.gain:+.1f}"
        lines.append(f"| {claim.about} | {shown} | {answer(gained)}{tested} |")
    return "\n".join(lines) + "\n"


def claims_page(cells: Sequence[RawCell]) -> str:
    """All claims."""
    found = means(cells)
    published = sum(is_published(split) for _, split, _, _ in found)
    lines = [
        "# The paper's claims, cell by cell",
        "",
        "Made by `python -m reproduce.paper_table table` from the ledger. Each figure is a difference of accuracies in",
        "points, the mean over the class splits that have both rows; positive where the claim holds. p: Wilcoxon's",
        "signed-rank test over the means of the sets, one-tailed, without a correction over the claims.",
        f"{len(found)} means, {published} of them on splits that come with the data.",
        "",
    ]
    for title, group in (
        ("The order of the rows", ORDERING),
        ("The ablation", ABLATION),
        ("Plain rows and ours", PLAIN),
        ("With the encoder tuned in both stages", TUNED_CLAIMS),
    ):
        lines += [f"## {title}", ""]
        lines += [line for claim in group for line in claim_lines(found, claim)]
    return "\n".join(lines).rstrip() + "\n"
