"""Evaluate a trained model on novel classes, beside the nearest prototype on the same vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from dmin.errors import ConfigError
from dmin.evaluation.evaluation_page import evaluation_page
from dmin.evaluation.evaluation_plan import EvaluationPlan
from dmin.evaluation.figures import confusion_figure, save_png
from dmin.evaluation.protocol import Cell, MethodScorer, draw_episodes, encode_classes, run_episodes
from dmin.files import write_json
from dmin.methods import FewShotMethod, create
from dmin.methods.base import Inputs
from dmin.model import TrainedModel


def evaluate_model(
    model: TrainedModel, plan: EvaluationPlan, out: Path, *, show: bool = False, warn: Callable[[str], None]
) -> list[Cell]:
    """Score every (way, shot) of the plan and write summary, per-class accuracy, episodes, pictures and a page."""
    if plan.episodes < 1:
        raise ConfigError(f"--episodes {plan.episodes}: at least 1 is needed")
    classes = plan.split.part(plan.part)
    settings = [(way, shot) for way in plan.ways for shot in plan.shots]
    corpus = plan.corpus
    _warn_of_classes(model, plan, warn)
    lists = {
        (way, shot): draw_episodes(
            corpus, classes, way, shot, plan.queries, plan.episodes,
            out / "episodes" / plan.file_name(way, shot),
        )
        for way, shot in settings
    }  # fmt: skip
    kinds: list[Inputs] = ["vectors"] if model.method.inputs == "vectors" else ["vectors", "tokens"]
    tables = {kind: encode_classes(model, corpus, classes, kind=kind, show=show) for kind in kinds}
    cells = []
    for way, shot in settings:
        for method in with_nearest(model.method):
            label = f"{method.title}, {way}-way {shot}-shot"
            results = run_episodes(
                MethodScorer(method, tables[method.inputs]), lists[way, shot], description=label, show=show
            )
            cells.append(Cell(method.name, way, shot, results))
            if method is model.method:
                figure = confusion_figure(results.confusion, f"{label} on {corpus.name}")
                save_png(figure, out / f"confusion-{way}way-{shot}shot.png")
    evaluation_page(cells, plan, tables["vectors"]).write(out / "report.html")
    hashes = {f"{way}-way {shot}-shot": lists[way, shot].hash for way, shot in settings}
    write_summary(model, plan, out, cells, hashes)
    return cells


def write_summary(
    model: TrainedModel, plan: EvaluationPlan, out: Path, cells: Sequence[Cell], hashes: dict[str, str]
) -> None:
    """Write `summary.json` (accuracies between 0 and 1) and, beside it, each cell's per-class accuracy."""
    per_class = [
        {
            "method": cell.method,
            "way": cell.way,
            "shot": cell.shot,
            "classes": {name: {"accuracy": rate, "queries": n} for name, (rate, n) in cell.results.per_class().items()},
        }
        for cell in cells
    ]
    write_json(out / "per_class.json", per_class)
    summary = {
        "method": model.info.method,
        "data": plan.corpus.name,
        "split": plan.split_name,
        "cells": [cell.as_dict() for cell in cells],
        "part": plan.part,
        "queries": plan.queries,
        "trained_on": model.info.trained_on,
        "episode_hashes": hashes,
    }
    write_json(out / "summary.json", summary)


def _warn_of_classes(model: TrainedModel, plan: EvaluationPlan, warn: Callable[[str], None]) -> None:
    """Warn of classes that the model knows from training, and of those with too few texts."""
    classes = plan.split.part(plan.part)
    seen = sorted(set(classes) & set(model.info.base_classes))
    if seen:
        warn(
            f"{len(seen)} of the {len(classes)} {plan.part} classes are base classes of the model: {', '.join(seen[:5])}"
        )
    for shot in plan.shots:
        small = plan.corpus.large_enough(classes, shot + plan.queries)[1]
        if small:
            warn(f"{len(small)} {plan.part} classes have fewer than {shot} + {plan.queries} texts and are left out of the "
                 f"{shot}-shot episodes: {', '.join(small[:5])}")  # fmt: skip


def with_nearest(method: FewShotMethod) -> list[FewShotMethod]:
    """The method and, as the baseline that needs no training, the nearest prototype."""
    return [method] if method.name == "nearest" else [method, create("nearest", 0, way=0, shot=0)]
