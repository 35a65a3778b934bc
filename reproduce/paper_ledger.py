"""The ledger of the paper's table: one line per finished cell, with the right answers of each episode; resumable."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dmin.data import Corpus
from dmin.errors import DminError
from dmin.evaluation.bench import Bench
from dmin.evaluation.raw import RawCell, read_raw
from dmin.files import folder_lock, write_atomic
from dmin.training import open_corpus
from reproduce.paper_plan import FOLDER, CellPlan, plan_of
from reproduce.paper_unlabelled import UnlabelledBench

LEDGER = FOLDER / "paper-table" / "cells.jsonl"
Identity = tuple[str, str, str, int, int, int]


def identity(cell: RawCell) -> Identity:
    """What a line is about; see `CellPlan.identity`."""
    return cell.data, cell.split, cell.row.name, cell.way, cell.shot, cell.seed


def read(path: Path = LEDGER) -> dict[Identity, RawCell]:
    """The lines of the ledger."""
    if not path.is_file():
        return {}
    return {identity(cell): cell for cell in read_raw(path)[1]}


def write(lines: dict[Identity, RawCell], path: Path = LEDGER) -> None:
    """Write the ledger in a fixed order, so that a change of one cell is a change of one line."""
    write_atomic(path, "".join(lines[name].line() + "\n" for name in sorted(lines)))


def add(lines: dict[Identity, RawCell], path: Path = LEDGER) -> None:
    """Put lines into the ledger, beside those that another process added meanwhile."""
    with folder_lock(path, shared=False):
        write({**read(path), **lines}, path)


def current(lines: dict[Identity, RawCell], plans: Sequence[CellPlan]) -> dict[Identity, RawCell]:
    """The lines that today's code and settings would compute again; the others are stale."""
    keys = {plan.identity: plan.prepared.key for plan in plans}
    return {name: cell for name, cell in lines.items() if keys.get(name) == cell.key}


def missing(lines: dict[Identity, RawCell], plans: Sequence[CellPlan]) -> list[CellPlan]:
    """The cells that are not there, or stale, in the order of filling."""
    there = current(lines, plans)
    return [plan for plan in plans if plan.identity not in there]


class Filler:
    """Computes cells; what cells of one set, split and seed share (encoder, vectors, stage 1) is kept for the next one.

    Args:
        say: called with a line about each cell.
        episodes: where the test episodes are stored.
    """

    def __init__(self, say: Callable[[str], None], episodes: Path) -> None:
        self.say, self.episodes = say, episodes
        self._corpora: dict[str, Corpus] = {}
        self._benches: dict[tuple[str, str | None, int, str], Bench] = {}

    def compute(self, plan: CellPlan) -> RawCell:
        """Train and test one cell."""
        job, config = plan.prepared.job, plan.prepared.config
        if job.data not in self._corpora:
            self._corpora = {job.data: open_corpus(config)}
        group = (job.data, job.split, job.seed, plan.row.setup)
        if group not in self._benches:
            whole = plan_of(job.data, str(job.split), (job.row,), plan.row.setup)
            kind = UnlabelledBench if plan.row.setup == "unlabelled" else Bench
            self._benches = {group: kind(whole, plan.prepared, self._corpora[job.data], self.say)}
        result = self._benches[group].run(plan.prepared, self.episodes)
        return RawCell.of(result, plan.prepared.key, config.queries)


def fill(plans: Sequence[CellPlan], path: Path, *, minutes: float, say: Callable[[str], None], episodes: Path) -> int:
    """Fill cells into the ledger until none is left or the time is over; returns how many were filled."""
    until = time.monotonic() + 60 * minutes
    filler = Filler(say, episodes)
    done = 0
    for plan in plans:
        if time.monotonic() > until:
            break
        try:
            cell = filler.compute(plan)
        except DminError as error:
            say(f"{plan.prepared.job.label}: cannot be filled: {error}")
            continue
        add({plan.identity: cell}, path)
        done += 1
        accuracies = cell.result().accuracies
        say(f"{plan.prepared.job.label}: {100 * sum(accuracies) / len(accuracies):.1f} in {cell.seconds:.0f} s")
    return done
