"""The search for each method's settings, on validation classes only.

Every method has the same budget of trials on its own declared space (`Traits.search`). A trial trains the method with some
settings on each data set, way and shot, and measures it on episodes of the validation classes, drawn by a seed of their
own; no text of a test class is read. The first trial is the default, so what is chosen never loses to it on these episodes.

Unusual: a trial's settings follow from the seed, its number and the trials before it, so an interrupted search is replayed
from its ledger and goes on as if it had never stopped.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dmin.data import Corpus, EpisodeSampler
from dmin.encoder.opening import tunable
from dmin.errors import ConfigError, DataError
from dmin.evaluation.protocol import FineTuneScorer, MethodScorer, Scorer, run_episodes
from dmin.evaluation.statistics import Interval, mean_interval
from dmin.files import folder_lock, read_json, write_atomic
from dmin.methods import FewShotMethod, FineTunesEncoder, method_class
from dmin.methods.search_space import SearchSpace
from dmin.progress import Advance, progress
from dmin.training import Task, TrainConfig, load_config, open_corpus, open_encoder, prepare_task
from dmin.training.loop import Loop
from dmin.training.metrics import MetricLog
from dmin.training.sources import source_kind
from dmin.training.task import check_method, chosen_pooling
from dmin.training.train import TRAINING_PARTS, HeadTrainer, make_accelerator

SEARCH_SEED = 3_000_017  # of the episodes that judge a trial: neither those that stop a training nor those of a test
STARTUP = 5  # trials drawn at random before the sampler learns from those before
LEDGER_FORMAT = 1


@dataclass(frozen=True)
class SearchPlan:
    """What is searched, and by what it is judged; `base` holds the settings that all trials share."""

    base: TrainConfig
    data: tuple[str, ...]
    split: str | None
    methods: tuple[str, ...]
    ways: tuple[int, ...] = (5,)
    shots: tuple[int, ...] = (1, 5)
    trials: int | None = None  # at most so many; None: as each method declares
    episodes: int = 150  # of the validation classes, that judge a trial
    seed: int = 0

    @property
    def cells(self) -> list[tuple[str, int, int]]:
        """(data, way, shot) of every cell of a trial."""
        return [(data, way, shot) for data in self.data for way in self.ways for shot in self.shots]

    def budget(self, method: str) -> int:
        """How many trials a method gets."""
        space = method_class(method).traits.search
        return min(space.size, space.trials if self.trials is None else min(self.trials, space.trials))

    def about(self) -> dict[str, Any]:
        """What decides a cell's result, besides the method's settings: a ledger belongs to one such description."""
        shared = self.base.model_dump(mode="json", exclude_defaults=True)
        drop = ("data", "split", "method", "options", "way", "shot", "seed")
        return {
            "base": {key: value for key, value in shared.items() if key not in drop},
            "training_episodes": self.base.stage2.episodes, "split": self.split, "episodes": self.episodes,
            "seed": self.seed,
        }  # fmt: skip


@dataclass(frozen=True)
class CellResult:
    """How a trial did in one data set, way and shot: right answers of each validation episode."""

    data: str
    split: str
    way: int
    shot: int
    queries: int  # in an episode
    right: list[int]
    seconds: float

    @property
    def accuracies(self) -> list[float]:
        """Of each episode."""
        return [count / self.queries for count in self.right]


@dataclass
class Trial:
    """One combination of settings, and what it reached."""

    settings: dict[str, Any]
    cells: list[CellResult] = field(default_factory=list)

    def accuracy(self, data: str | None = None) -> float:
        """Mean over the cells (of one data set) of the mean over episodes."""
        found = [cell for cell in self.cells if data in (None, cell.data)]
        return sum(sum(cell.accuracies) / len(cell.right) for cell in found) / len(found)

    def gain(self, other: Trial) -> Interval:
        """Mean difference to another trial, with its 95 % confidence interval over the same episodes of all cells."""
        pairs = zip(self.cells, other.cells, strict=True)
        return mean_interval([x - y for a, b in pairs for x, y in zip(a.accuracies, b.accuracies, strict=True)])


class Ledger:
    """Finished cells in a JSON file, written whole after each cell; several processes may fill it at once."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path, self.about = path, about
        self.cells: dict[str, CellResult] = self._read()

    def _read(self) -> dict[str, CellResult]:
        if not self.path.is_file():
            return {}
        stored = read_json(self.path)
        if not isinstance(stored, dict) or stored.get("format") != LEDGER_FORMAT:
            raise DataError(f"{self.path} is not a ledger of dmin search: choose another --out")
        if stored.get("search") != self.about:
            raise ConfigError(f"{self.path} holds a search with other settings: give the same, or another --out")
        try:
            return {key: CellResult(**cell) for key, cell in stored["cells"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{self.path} is damaged: remove it, or choose another --out") from error

    @staticmethod
    def key(method: str, settings: dict[str, Any], data: str, way: int, shot: int) -> str:
        """Names a cell of a trial."""
        return f"{method} {data} {way}-way {shot}-shot {json.dumps(settings, sort_keys=True)}"

    def add(self, key: str, cell: CellResult) -> None:
        """Keep a cell, beside those that another process added meanwhile."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with folder_lock(self.path, shared=False):
            self.cells |= self._read()
            self.cells[key] = cell
            write_atomic(self.path, self._text())

    def _text(self) -> str:
        """The ledger as JSON, one line per cell, so that a new cell is a new line."""
        head = json.dumps({"format": LEDGER_FORMAT, "search": self.about})
        cells = [f"{json.dumps(name)}: {json.dumps(asdict(found))}" for name, found in self.cells.items()]
        return f'{head[:-1]}, "cells": {{\n' + ",\n".join(cells) + "\n}}\n"


class Search:
    """Runs the trials of a plan, into a ledger.

    Args:
        plan: what to search.
        ledger: the file that keeps finished cells.
        warn: called with each warning.
        show: show progress.
    """

    def __init__(self, plan: SearchPlan, ledger: Path, *, warn: Callable[[str], None], show: bool = False) -> None:
        self.plan, self.warn, self.show = plan, warn, show
        self.ledger = Ledger(ledger, plan.about())
        self._corpora: dict[str, Corpus] = {}
        self._trainers: dict[tuple[str, str], HeadTrainer] = {}
        self._said: set[str] = set()

    def run(self) -> dict[str, list[Trial]]:
        """Run what is missing; returns the trials of each method, the default first."""
        total = sum(self.plan.budget(method) for method in self.plan.methods) * len(self.plan.cells)
        found: dict[str, list[Trial]] = {}
        with progress("searching", total, unit="cells", show=self.show) as advance:
            for method in self.plan.methods:
                space = method_class(method).traits.search
                trials: list[Trial] = []
                for number in range(self.plan.budget(method)):
                    settings = suggest(space, trials, self.plan.seed + number)
                    trials.append(self.trial(method, settings, f"{method}, trial {number + 1}", advance))
                found[method] = trials
        return found

    def trial(self, method: str, settings: dict[str, Any], title: str, advance: Advance) -> Trial:
        """Measure one combination of settings on every cell of the plan."""
        done = Trial(settings)
        for cell in self.plan.cells:
            advance(0, now=f"{title}, {cell[0]} {cell[1]}-way {cell[2]}-shot")
            done.cells.append(self._cell(method, settings, *cell))
            advance()
        return done

    def check(self) -> None:
        """Raise the first mistake of the default trials, before any training."""
        for method in self.plan.methods:
            for data, way, shot in self.plan.cells:
                config = self._config(method, method_class(method).traits.search.start, data, way, shot)
                task = prepare_task(config, self._warn_once, self._corpus(config))
                check_method(config, task, self._trainer(config).encoder.width)

    def _cell(self, method: str, settings: dict[str, Any], data: str, way: int, shot: int) -> CellResult:
        key = Ledger.key(method, settings, data, way, shot)
        if key not in self.ledger.cells:
            self.ledger.add(key, self._measure(self._config(method, settings, data, way, shot)))
        return self.ledger.cells[key]

    def _measure(self, config: TrainConfig) -> CellResult:
        """Train with some settings, and judge on episodes of the validation classes."""
        began = time.perf_counter()
        corpus = self._corpus(config)
        task = prepare_task(config, self._warn_once, corpus)
        trainer = self._trainer(config)
        trainer.learn_base(config, task)
        method, _ = trainer.train(config, task)
        way = min(config.way, len(corpus.large_enough(task.split.valid, config.shot + config.queries)[0]))
        judge = EpisodeSampler(corpus, task.split.valid, way, config.shot, config.queries, SEARCH_SEED)
        episodes = judge.take(self.plan.episodes)
        results = run_episodes(self._scorer(config, task, trainer, method), episodes, description=config.method)
        queries = way * config.queries
        right = [round(accuracy * queries) for accuracy in results.accuracies]
        seconds = round(time.perf_counter() - began, 2)
        return CellResult(config.data, task.split_name, config.way, config.shot, queries, right, seconds)

    @staticmethod
    def _scorer(config: TrainConfig, task: Task, trainer: HeadTrainer, method: FewShotMethod) -> Scorer:
        source = trainer.source(config, task, source_kind(method), TRAINING_PARTS)
        if isinstance(method, FineTunesEncoder) and config.tune != "none":
            return FineTuneScorer(method, tunable(trainer.encoder).network, source)
        return MethodScorer(method, source.snapshot(task.text_indices("valid")))

    def _config(self, method: str, settings: dict[str, Any], data: str, way: int, shot: int) -> TrainConfig:
        values = self.plan.base.model_dump()
        values |= {
            "data": data, "split": self.plan.split, "method": method, "options": {}, "way": way, "shot": shot,
            "seed": self.plan.seed,
        }  # fmt: skip
        return load_config(overrides=values | settings)

    def _corpus(self, config: TrainConfig) -> Corpus:
        if config.data not in self._corpora:
            self._corpora[config.data] = open_corpus(config)
        return self._corpora[config.data]

    def _trainer(self, config: TrainConfig) -> HeadTrainer:
        """The trainer of a data set and a pooling; its encoder, encoded texts and stage 1 are shared by the trials."""
        key = config.data, chosen_pooling(config)
        if key not in self._trainers:
            accelerator = make_accelerator(config)
            loop = Loop(accelerator, None, MetricLog(None, accelerator), show=False, resume_hint="the same command")
            self._trainers[key] = HeadTrainer(open_encoder(config), loop, config, several=True, tested=False)
        return self._trainers[key]

    def _warn_once(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self.warn(message)


def suggest(space: SearchSpace, before: Sequence[Trial], seed: int) -> dict[str, Any]:
    """The settings of the next trial: the default first, then what a tree-structured Parzen estimator proposes.

    A combination that was tried is not tried again: the sampler is asked anew, then the first untried one is taken.
    """
    if not before:
        return space.start
    try:
        import optuna
    except ImportError as error:
        raise ConfigError("the search needs optuna: pip install 'dmin[search]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # Values are proposed by their place in the space, because optuna's categories are plain numbers and texts only.
    distributions = {
        name: optuna.distributions.CategoricalDistribution(range(len(values))) for name, values in space.choices
    }
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP, multivariate=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for trial in before:
        places = {name: values.index(trial.settings[name]) for name, values in space.choices}
        study.add_trial(optuna.create_trial(params=places, distributions=distributions, value=trial.accuracy()))
    tried = [trial.settings for trial in before]
    for _ in range(50):
        proposed = study.ask(distributions)
        settings = {name: values[proposed.params[name]] for name, values in space.choices}
        if settings not in tried:
            return settings
    return next(settings for settings in combinations(space) if settings not in tried)


def combinations(space: SearchSpace) -> list[dict[str, Any]]:
    """Every combination of a space."""
    found: list[dict[str, Any]] = [{}]
    for name, values in space.choices:
        found = [{**settings, name: value} for settings in found for value in values]
    return found


def best(trials: Sequence[Trial], data: str | None = None) -> Trial:
    """The trial with the highest accuracy (on one data set); of equal ones the earliest, so the default wins a tie."""
    return max(trials, key=lambda trial: trial.accuracy(data))


def report(
    trials: dict[str, list[Trial]], data: Sequence[str], chosen: Mapping[str, Trial] | None = None
) -> dict[str, dict[str, Any]]:
    """For each method what was chosen, over all data and on each set, with accuracies on validation episodes.

    Args:
        trials: of each method, the default first.
        data: the sets that were searched.
        chosen: what a sweep ended with, by method; else the best trial.
    """
    found = {}
    for method, done in trials.items():
        choice = (chosen or {}).get(method) or best(done)
        gain = choice.gain(done[0])
        found[method] = {
            "settings": choice.settings,
            "changed": {key: value for key, value in choice.settings.items() if value != done[0].settings[key]},
            "trials": len(done),
            "validation_accuracy": round(choice.accuracy(), 5),
            "default_accuracy": round(done[0].accuracy(), 5),
            "gain": round(gain.mean, 5),
            "gain_ci95": 0.0 if math.isnan(gain.half_width) else round(gain.half_width, 5),
            "by_data": {name: best(done, name).settings for name in data} if len(data) > 1 else {},
        }
    return found
