"""The paper's claims, cell by cell: is one row better than another, on the same class splits of the same set?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from dmin.evaluation.raw import RawCell
from dmin.evaluation.statistics import ALPHA, holm, paired_test
from reproduce.paper_plan import SETS, SETTINGS, is_published
from reproduce.paper_questions import GROUPS, Claim
from reproduce.paper_rows import ROWS

Setting = tuple[int, int]
Cell = tuple[str, Setting]  # a set and a setting
# set, split, row, setting -> seed -> accuracy of each episode
Results = dict[tuple[str, str, str, Setting], dict[int, list[float]]]
ENOUGH = 5  # sets, for a test over them


def results(cells: Sequence[RawCell]) -> Results:
    """Accuracies by episode of every set, split, row and setting."""
    found: Results = {}
    for cell in cells:
        place = (cell.data, cell.split, cell.row.name, (cell.way, cell.shot))
        found.setdefault(place, {})[cell.seed] = cell.result().accuracies
    return found


Pair = tuple[list[float], list[float]]  # accuracies by episode of the better and of the worse row


def pairs(found: Results, claim: Claim) -> dict[Cell, list[Pair]]:
    """Both rows on each split that has both, by set and setting; the mean over the training seeds that both have.

    Splits that come with the data count only where a row stands on no other: the search saw some of their test classes.
    """
    there: dict[Cell, list[Pair]] = {}
    published = any(ROWS[row].published_only for row in (claim.better, claim.worse))
    for (data, split, row, setting), better in found.items():
        worse = found.get((data, split, claim.worse, setting), {})
        seeds = better.keys() & worse.keys()
        if row == claim.better and seeds and (published or not is_published(split)):
            one, two = (np.mean([runs[seed] for seed in sorted(seeds)], axis=0).tolist() for runs in (better, worse))
            there.setdefault((data, setting), []).append((one, two))
    return there


@dataclass(frozen=True)
class Verdict:
    """How a claim did."""

    gains: dict[Cell, float]  # better - worse, the mean over the splits
    p_value: float  # Wilcoxon's signed-rank test over the sets, two-tailed, after Holm; NaN with fewer than `ENOUGH`
    shown: dict[Cell, bool]  # cells of one split: do the episodes show a difference, after Holm?

    @property
    def holds(self) -> int:
        """Cells in which the claim holds."""
        return sum(gain > 0 for gain in self.gains.values())

    @property
    def gain(self) -> float:
        """Mean difference over the cells."""
        return float(np.mean(list(self.gains.values())))

    @property
    def sets(self) -> int:
        """Sets that have a cell."""
        return len({data for data, _ in self.gains})

    @property
    def held(self) -> str:
        """As "3 of 18 cells"."""
        return f"{self.holds} of {len(self.gains)} cells"


def verdicts(found: Results, claims: Sequence[Claim]) -> dict[Claim, Verdict]:
    """The verdicts of a family of claims; one without a cell has none.

    The test is over the sets, because cells of one set are not independent (hwu64 and liu54 share texts, too). With too
    few sets, the episodes of each cell are tested instead, which speaks of that cell's classes alone.
    """
    there = {claim: cells for claim in claims if (cells := pairs(found, claim))}
    gains = {
        claim: {cell: float(np.mean([np.mean(a) - np.mean(b) for a, b in splits])) for cell, splits in cells.items()}
        for claim, cells in there.items()
    }
    over_sets = {claim: p for claim in there if (p := _over_sets(gains[claim])) is not None}
    over_episodes = {
        (claim, cell): _over_episodes(splits[0])
        for claim, cells in there.items()
        for cell, splits in cells.items()
        if claim not in over_sets and len(splits) == 1
    }
    tested, shown = holm(over_sets), holm(over_episodes)
    return {
        claim: Verdict(
            gains[claim],
            tested.get(claim, float("nan")),
            {cell: shown[claim, cell] < ALPHA for cell in there[claim] if (claim, cell) in shown},
        )
        for claim in there
    }


def _over_sets(gains: dict[Cell, float]) -> float | None:
    """p of Wilcoxon's signed-rank test over the means of the sets, two-tailed; None with too few sets."""
    by_set = set_means(gains)
    if len(by_set) < ENOUGH:
        return None
    return float(stats.wilcoxon(by_set).pvalue) if any(by_set) else 1.0


def set_means(gains: dict[Cell, float]) -> list[float]:
    """The mean difference of each set."""
    return [
        float(np.mean([gains[cell] for cell in gains if cell[0] == data]))
        for data in dict.fromkeys(one for one, _ in gains)
    ]


def _over_episodes(pair: Pair) -> float:
    """p of the permutation test over shared episodes, two-tailed."""
    return min(1.0, 2 * min(paired_test(a, b).permutation_p for a, b in (pair, pair[::-1])))


def _ranks_above(values: Sequence[float]) -> bool:
    """Is the sum of the ranks of the positive ones, which Wilcoxon's test looks at, the larger?"""
    ranks = stats.rankdata(np.abs(values))
    return float(ranks @ np.sign(values)) > 0


def answer(said: Verdict | None) -> str:
    """Does a claim hold? Said only where a test over enough sets says so; its direction is that of the sets' ranks."""
    if said is None:
        return "not measured yet"
    if said.sets < ENOUGH:
        clear = {cell for cell, shown in said.shown.items() if shown}
        above = sum(said.gains[cell] > 0 for cell in clear)
        counted = f": {above} cells clearly above, {len(clear) - above} below" if said.shown else ""
        return f"not decided ({said.sets} of {len(SETS)} sets measured{counted})"
    if said.p_value >= ALPHA:
        verdict = "not shown, in neither direction"
    else:
        verdict = "holds" if _ranks_above(set_means(said.gains)) else "does not hold: the opposite does"
    return f"{verdict} (p = {said.p_value:.3f}, {said.sets} sets)"


def claim_lines(claim: Claim, said: Verdict | None) -> list[str]:
    """The claim's verdict and its differences in points, set by set."""
    if said is None:
        return [f"**{claim.about}**: no cell has both rows yet.", ""]
    lines = [
        f"**{claim.about}**: in {said.held}, mean difference {100 * said.gain:+.1f} points; {answer(said)}.",
        "",
        "| | " + " | ".join(f"{way}-way {shot}-shot" for way, shot in SETTINGS) + " |",
        "|---|" + "---:|" * len(SETTINGS),
    ]
    for data in SETS:
        if any(one == data for one, _ in said.gains):
            shown = [_gain_text(said, (data, setting)) for setting in SETTINGS]
            lines.append(f"| {data} | " + " | ".join(shown) + " |")
    return [*lines, ""]


def _gain_text(said: Verdict, cell: Cell) -> str:
    gain = said.gains.get(cell)
    return "" if gain is None else f"{100 * gain:+.1f}" + ("*" if said.shown.get(cell) else "")


def summary(cells: Sequence[RawCell]) -> str:
    """One line per claim, for the front page; a family of which nothing is measured is left out."""
    found = results(cells)
    lines = ["| claim | in | mean difference | over the sets |", "|---|---:|---:|---|"]
    for title, claims in GROUPS:
        there = verdicts(found, claims)
        if not there:
            continue
        lines.append(f"| *{title}* | | | |")
        for claim in claims:
            said = there.get(claim)
            shown = " | " if said is None else f"{said.held} | {100 * said.gain:+.1f}"
            lines.append(f"| {claim.about} | {shown} | {answer(said)} |")
    return "\n".join(lines) + "\n"


def claims_page(cells: Sequence[RawCell]) -> str:
    """All claims."""
    found = results(cells)
    lines = [
        "# The paper's claims, cell by cell",
        "",
        "Made by `python -m reproduce.paper_table table` from the ledger. Each figure is a difference of accuracies in",
        "points, the mean over the class splits (and training seeds) that have both rows; positive where the claim holds.",
        "Splits that come with",
        "the data count only for rows that stand on no other (ATAML, fine-tuning, a tuned encoder). p: Wilcoxon's",
        "signed-rank test over the means of the sets, two-tailed, after Holm's correction over the claims of a section.",
        f"With fewer than {ENOUGH} sets nothing is decided; there * marks a difference beyond chance over the episodes of",
        "its one split (permutation test, two-tailed, p < 0.05 after Holm over the section), which speaks of that split's",
        "classes alone. hwu64 and liu54 share texts, so nine sets are a little fewer than nine independent ones.",
        "",
        "The searched settings give QIM one capsule. With one example per class its routing then cannot change a cosine,",
        "and with five it hardly does: in the first ablation *three rounds above one* and *dynamic above static* are",
        "nearly one measurement (that of DMM's rounds), and *QIM helps* compares a learned map. The ablation of DMIN as",
        "written, whose QIM has four capsules, asks them again.",
        "",
    ]
    for title, claims in GROUPS:
        there = verdicts(found, claims)
        lines += [f"## {title}", ""]
        lines += [line for claim in claims for line in claim_lines(claim, there.get(claim))]
    return "\n".join(lines).rstrip() + "\n"
