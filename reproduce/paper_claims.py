"""The paper's claims, cell by cell: is one row better than another, on the same class splits of the same set?"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from dmin.evaluation.raw import RawCell
from dmin.evaluation.statistics import ALPHA, holm, paired_test
from reproduce.kinds_lines import points
from reproduce.paper_captions import HOW_CLAIMS_ARE_ASKED
from reproduce.paper_plan import SETS, SETTINGS, is_published
from reproduce.paper_questions import GROUPS, Claim
from reproduce.paper_rows import ROWS

Setting = tuple[int, int]
Cell = tuple[str, Setting]  # a set and a setting
# set, split, row, setting -> seed -> accuracy of each episode
Results = dict[tuple[str, str, str, Setting], dict[int, list[float]]]
SHARING = "liu54"  # a set that shares texts with another
ENOUGH = 6  # sets, for a test over them: the smallest p of fewer is above 0.05


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
    decidable: bool  # could so many sets give p < 0.05 after Holm, beside the other claims of the family?
    shown: dict[Cell, bool]  # cells of one split: do the episodes show a difference, after Holm?

    @property
    def holds(self) -> int:
        """Cells in which the claim holds."""
        return sum(gain > 0 for gain in self.gains.values())

    @property
    def gain(self) -> float:
        """Mean difference over the sets."""
        return float(np.mean(set_means(self.gains)))

    @property
    def sets(self) -> int:
        """Sets that have a cell."""
        return len({data for data, _ in self.gains})

    @property
    def held(self) -> str:
        """As "3 of 18 cells, 2 equal"."""
        equal = sum(gain == 0 for gain in self.gains.values())
        return f"{self.holds} of {len(self.gains)} cells" + (f", {equal} equal" if equal else "")

    @property
    def significant(self) -> bool:
        """Do the sets show a difference, in whichever direction?"""
        return self.p_value < ALPHA


def verdicts(found: Results, claims: Sequence[Claim]) -> dict[Claim, Verdict]:
    """The verdicts of a family of claims; one without a cell has none.

    The test is over the sets, because cells of one set are not independent (hwu64 and liu54 share texts, too). With too
    few sets, the episodes of each cell are tested instead, which speaks of that cell's classes and trainings alone. The
    family is fixed, whatever is measured: a claim without a test counts in Holm's correction as one with p = 1.
    """
    there = {claim: cells for claim in claims if (cells := pairs(found, claim))}
    gains = {
        # Rounded, because equal counts of right answers may differ in the last bit of their means
        claim: {
            cell: round(float(np.mean([np.mean(a) - np.mean(b) for a, b in splits])), 9) + 0.0
            for cell, splits in cells.items()
        }
        for claim, cells in there.items()
    }
    over_sets = {claim: p for claim in there if (p := p_over_sets(gains[claim])) is not None}
    over_episodes = {
        (claim, cell): _over_episodes(splits[0])
        for claim, cells in there.items()
        for cell, splits in cells.items()
        if claim not in over_sets and len(splits) == 1
    }
    family = {claim: over_sets.get(claim, 1.0) for claim in claims}
    tested, shown = holm(family), holm(over_episodes)
    return {
        claim: Verdict(
            gains[claim],
            tested[claim] if claim in over_sets else float("nan"),
            holm({**family, claim: smallest_p(len(set_means(gains[claim])))})[claim] < ALPHA,
            {cell: shown[claim, cell] < ALPHA for cell in there[claim] if (claim, cell) in shown},
        )
        for claim in there
    }


def smallest_p(sets: int) -> float:
    """Of Wilcoxon's signed-rank test, two-tailed: all sets on one side."""
    return 2.0 ** (1 - sets)


def p_over_sets(gains: dict[Cell, float]) -> float | None:
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
        counted = (
            f"; over their episodes {above} cells significantly above, {len(clear) - above} below" if said.shown else ""
        )
        return f"too few sets for a test ({said.sets}){counted}"
    if not said.significant:
        verdict = "not shown, in neither direction" if said.decidable else "too few sets to decide"
    else:
        verdict = "holds" if _ranks_above(set_means(said.gains)) else "the opposite holds"
    return f"{verdict} (p = {said.p_value:.3f}, {said.sets} sets)"


def claim_lines(claim: Claim, said: Verdict | None) -> list[str]:
    """The claim's verdict and its differences in points, set by set."""
    if said is None:
        return [f"**{claim.about}**: no cell has both rows yet.", ""]
    lines = [
        f"**{claim.about}**: in {said.held}, mean difference of the sets {points(said.gain)} points; {answer(said)}.",
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
    return "" if gain is None else points(gain) + ("*" if said.shown.get(cell) else "")


def summary(cells: Sequence[RawCell], families: Container[str] | None = None) -> str:
    """One line per claim; a family of which nothing is measured is left out.

    Args:
        cells: of the ledger.
        families: the titles of some; all by default, then with what a stricter reading would leave.
    """
    found = results(cells)
    lines = ["| claim | positive in | mean difference of the sets | over the sets |", "|---|---:|---:|---|"]
    for title, claims in GROUPS:
        there = verdicts(found, claims)
        if not there or (families is not None and title not in families):
            continue
        lines.append(f"| *{title}* | | | |")
        for claim in claims:
            said = there.get(claim)
            shown = " | " if said is None else f"{said.held} | {points(said.gain)}"
            lines.append(f"| {claim.about} | {shown} | {answer(said)} |")
    return "\n".join([*lines, *(["", *strictness(found)] if families is None else [])]) + "\n"


def strictness(found: Results) -> list[str]:
    """How many of the differences shown would be left by a stricter reading."""
    there = _all_verdicts(found)
    shown = {claim for claim, said in there.items() if said.significant}
    if not shown:
        return []
    every = holm({claim: p for claim, said in there.items() if (p := p_over_sets(said.gains)) is not None})
    fewer = _all_verdicts({place: seeds for place, seeds in found.items() if place[0] != SHARING})
    left = {claim for claim in shown if claim in fewer and fewer[claim].significant}
    unable = sum(claim in fewer and not fewer[claim].decidable for claim in shown - left)
    beside = sum(p < ALPHA for p in every.values())
    lost = f"; of the other {len(shown - left)}, {unable} could not show any with a set fewer" if shown - left else ""
    return [
        f"{len(shown)} of {len(every)} tested claims show a difference in one direction or the other, each family with",
        f"a correction of its own. Without {SHARING}, which shares texts with hwu64, {len(left)} are left{lost}.",
        f"Nine sets allow no p below {smallest_p(len(SETS)):.3f}, so that one correction over all {len(every)} tests",
        f"would leave {beside}.",
    ]


def _all_verdicts(found: Results) -> dict[Claim, Verdict]:
    return {claim: said for _, claims in GROUPS for claim, said in verdicts(found, claims).items()}


def claims_page(cells: Sequence[RawCell]) -> str:
    """All claims."""
    found = results(cells)
    lines = [HOW_CLAIMS_ARE_ASKED.format(enough=ENOUGH), *strictness(found), ""]
    for title, claims in GROUPS:
        there = verdicts(found, claims)
        lines += [f"## {title}", ""]
        lines += [line for claim in claims for line in claim_lines(claim, there.get(claim))]
    return "\n".join(lines).rstrip() + "\n"
