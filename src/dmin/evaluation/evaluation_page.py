"""The HTML page of an evaluation on episodes: accuracies, hardest classes and texts, confusion matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from dmin.data import Corpus
from dmin.evaluation.evaluation_plan import EvaluationPlan
from dmin.evaluation.protocol import Cell as Measured
from dmin.evaluation.statistics import ALPHA, paired_test
from dmin.methods import method_class
from dmin.methods.base import unit
from dmin.report import Bar, BarGroup, Cell, Report, TextRow, percent
from dmin.training.sources import EncodedTexts

HARDEST = 20  # texts
LEAST_EPISODES = 2  # in which a text was asked, to be called hard


def evaluation_page(cells: Sequence[Measured], plan: EvaluationPlan, vectors: EncodedTexts) -> Report:
    """A page with the accuracies of all settings, the hardest classes and texts, and the confusion matrices."""
    report = Report(f"Evaluation on {plan.corpus.name}", verdict(cells, plan), facts=_facts(cells))
    report.heading("Accuracy")
    add_accuracies(report, cells)
    report.paragraph(
        f"In %, with 95 % confidence intervals over {plan.episodes} episodes of {plan.queries} queries per class; "
        f"{plan.part} classes of {plan.split_name}.",
        note=True,
    )
    own = own_cells(cells)
    report.heading("Classes, hardest first")
    _add_classes(report, own)
    total: Counter[tuple[int, str]] = Counter()
    asked: Counter[int] = Counter()
    for cell in own:
        total.update(cell.results.wrong)
        asked.update(cell.results.asked)
        report.heading(f"Confusion matrix, {setting(cell)}")
        report.matrix(cell.results.confusion)
    rows = hardest_texts(total, asked, plan.corpus, vectors)
    if rows:
        report.heading("Texts that were most often wrong")
        report.texts(["text", "true class", "answered as", "wrong, %", "episodes"], rows, words=(1, 2))
    return report


def own_cells(cells: Sequence[Measured]) -> list[Measured]:
    """The cells of the model, without those of the baseline beside it."""
    return [cell for cell in cells if cell.method == cells[0].method]


def setting(cell: Measured) -> str:
    """As "5-way 1-shot"."""
    return f"{cell.way}-way {cell.shot}-shot"


def verdict(cells: Sequence[Measured], plan: EvaluationPlan) -> str:
    """The result in a sentence: where the model is better or worse than the baseline beside it."""
    own = own_cells(cells)
    lowest, highest = (pick(own, key=lambda cell: cell.results.interval.mean) for pick in (min, max))
    said = (
        f"{method_class(own[0].method).title} answers {percent(lowest.results.interval.mean)} ({setting(lowest)}) to "
        f"{percent(highest.results.interval.mean)} ({setting(highest)}) of the queries right, on {plan.part} classes of "
        f"{plan.corpus.name}."
    )
    beside = {(cell.way, cell.shot): cell for cell in cells if cell.method != own[0].method}
    pairs = [(c.results.accuracies, beside[c.way, c.shot].results.accuracies) for c in own if (c.way, c.shot) in beside]
    if not pairs or min(len(one) for one, _ in pairs) < 2:
        return said
    better = sum(paired_test(one, two).t_p < ALPHA / 2 for one, two in pairs)
    worse = sum(paired_test(two, one).t_p < ALPHA / 2 for one, two in pairs)
    other = method_class(next(iter(beside.values())).method).title
    return (
        f"{said} Beside {other}, it is significantly better in {better} and worse in {worse} of {len(pairs)} settings."
    )


def add_accuracies(report: Report, cells: Sequence[Measured]) -> None:
    """Add the table of methods by settings, the best of each setting in bold, and the same as bars."""
    settings = list(dict.fromkeys((cell.way, cell.shot) for cell in cells))
    names = list(dict.fromkeys(cell.method for cell in cells))
    by_place = {(cell.method, cell.way, cell.shot): cell for cell in cells}
    best = {place: max(c.results.interval.mean for c in cells if (c.way, c.shot) == place) for place in settings}
    rows: list[list[Cell | str]] = []
    for name in names:
        row: list[Cell | str] = [method_class(name).title]
        for place in settings:
            interval = by_place[name, *place].results.interval
            row.append(Cell(interval.percent(), strong=interval.mean == best[place]))
        rows.append(row)
    report.table(["method", *(f"{way}-way {shot}-shot" for way, shot in settings)], rows)
    report.bars(
        [BarGroup(f"{way}-way {shot}-shot", _bars(cells, way, shot, best[way, shot])) for way, shot in settings]
    )


def _bars(cells: Sequence[Measured], way: int, shot: int, best: float) -> list[Bar]:
    bars = []
    for cell in cells:
        if (cell.way, cell.shot) == (way, shot):
            found = cell.results.interval
            title = method_class(cell.method).title
            bars.append(Bar(title, found.mean, found.percent(), found.half_width, strong=found.mean == best))
    return bars


def _facts(cells: Sequence[Measured]) -> list[tuple[str, str]]:
    return [(setting(cell), percent(cell.results.interval.mean)) for cell in own_cells(cells)][:6]


def _add_classes(report: Report, own: Sequence[Measured]) -> None:
    """Add each class's accuracy in each setting."""
    found = [cell.results.per_class() for cell in own]
    rates = {label: [one.get(label) for one in found] for label in dict.fromkeys(n for one in found for n in one)}
    hardest = sorted(rates, key=lambda label: min(rate for rate, _ in filter(None, rates[label])))
    rows: list[list[Cell | str]] = [
        [label, *(Cell("") if r is None else Cell(percent(r[0]), bar=Bar("", r[0], "")) for r in rates[label])]
        for label in hardest
    ]
    report.table(["class", *map(setting, own)], rows)


def hardest_texts(
    wrong: Counter[tuple[int, str]], asked: Counter[int], corpus: Corpus, vectors: EncodedTexts
) -> list[TextRow]:
    """The texts that were wrong in the largest part of their episodes, each with the texts that lie nearest to it."""
    times: Counter[int] = Counter()
    for (row, _), count in wrong.items():
        times[row] += count
    often = [row for row in times if asked[row] >= LEAST_EPISODES]
    chosen = sorted(often, key=lambda row: (-times[row] / asked[row], -times[row]))[:HARDEST]
    found = []
    for row in chosen:
        answers = Counter({answer: count for (one, answer), count in wrong.items() if one == row})
        answer, count = answers.most_common(1)[0]
        own = corpus.labels[row]
        reason = (
            f"Answered as {answer} in {count} of {asked[row]} episodes; {_nearest(row, answer, corpus, vectors)}, "
            f"{_nearest(row, own, corpus, vectors)}."
        )
        share = f"{100 * times[row] / asked[row]:.0f}"
        found.append(TextRow(corpus.texts[row], [own, answer, share, str(asked[row])], reason))
    return found


def _nearest(row: int, label: str, corpus: Corpus, vectors: EncodedTexts) -> str:
    """In words: which text of a class lies nearest to a text."""
    others = [other for other in corpus.by_class[label] if other != row]
    if not others:
        return f"there is no other text of {label}"
    rows, own = vectors.at(torch.tensor(others)), vectors.at(torch.tensor([row]))
    if not isinstance(rows, Tensor) or not isinstance(own, Tensor):
        return f"{label} has {len(others)} other texts"
    cosines = unit(rows) @ unit(own).squeeze(0)  # [n]
    place = int(cosines.argmax())
    return f"the nearest text of {label} is “{corpus.texts[others[place]]}” (cosine {float(cosines[place]):.2f})"
