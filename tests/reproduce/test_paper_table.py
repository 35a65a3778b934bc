"""The paper's table: its plan, its ledger, and a page that is made of the ledger alone."""

from __future__ import annotations

import argparse
import itertools
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.image import imread

from dmin.data import load_corpus
from dmin.evaluation.protocol import draw_episodes
from dmin.evaluation.raw import RawCell, pack
from reproduce import paper_ledger, paper_plan, paper_table
from reproduce.paper_claims import claims_page, results, verdicts
from reproduce.paper_page import group, table_page
from reproduce.paper_plan import SEEDED, SETS, TUNED_SPLITS, CellPlan, cells, chosen_settings, splits_of
from reproduce.paper_questions import GROUPS, Claim
from reproduce.paper_rows import ROWS


@pytest.fixture(scope="module")
def plans() -> list[CellPlan]:
    return cells()


def line(data: str, split: str, row: str, counts: list[int], way: int = 5, shot: int = 1, seed: int = 0) -> RawCell:
    """A made-up cell."""
    known = ROWS[row].table_row
    return RawCell(
        key="0", data=data, split=split, seed=seed, row={"name": row, "method": known.method}, way=way, shot=shot,
        queries=10, title=row, right=pack(counts), episode_hash="h", train_classes=40, test_classes=10,
        trained_episodes=1, seconds=1, peak_megabytes=1,
    )  # fmt: skip


def made_up() -> list[RawCell]:
    """DMIN beats LwoF by two points on every split of every set, by one on banking77's second."""
    found = []
    for place, data in enumerate(SETS):
        for number in (1, 2, 3):
            gain = 1 if data == "banking77" and number == 2 else 2
            base = [30 + place + number + episode % 2 for episode in range(6)]
            found += [line(data, f"fair-0{number}", "lwof", base)]
            found += [line(data, f"fair-0{number}", "dmin", [count + gain for count in base])]
    return found


def test_the_plan_has_every_row_on_every_set(plans: list[CellPlan]) -> None:
    seen = {plan.identity[:3] for plan in plans}
    for data in SETS:
        first, second, published, *_ = splits_of(data)
        assert first == "fair-01" and second == "fair-02" and not published.startswith("fair")
        for name, row in ROWS.items():
            if (name == "ataml" and data == "stackoverflow") or row.part == "tuned":
                continue  # 4 validation classes; tuned rows have a test of their own
            assert ((data, published, name) in seen) == (row.part == "main")
            assert ((data, "fair-01", name) in seen) == (not row.published_only)
    ways = {plan.identity[3] for plan in plans if plan.identity[0] == "news20"}
    assert ways == {5}  # too few classes for ten
    assert len({plan.prepared.key for plan in plans}) == len(plans)
    pooled = {(plan.row.setup, plan.prepared.config.pooling, plan.prepared.config.tune) for plan in plans}
    assert pooled == {
        ("plain", "mean", "none"),
        ("names", "mean", "none"),
        ("unlabelled", "mean", "none"),
        ("layers", "layers", "none"),
        ("tuned", "cls", "full"),
    }  # the same for all
    assert [plan.rank for plan in plans] == sorted(plan.rank for plan in plans)


def test_every_row_stands_on_two_splits_at_least(plans: list[CellPlan]) -> None:
    """Those that are slow on the published splits alone; Rel. Net, which is compared with them, there as well."""
    five = [plan for plan in plans if plan.needed and plan.row.part == "main" and plan.identity[3] == 5]
    for data, name in itertools.product(SETS, [name for name, row in ROWS.items() if row.part == "main"]):
        if (name, data) == ("ataml", "stackoverflow"):
            continue
        splits = {plan.identity[1] for plan in five if (plan.identity[0], plan.identity[2]) == (data, name)}
        fair = set() if ROWS[name].published_only else {"fair-01", "fair-02"}
        first, second = paper_plan.PUBLISHED[data]
        assert splits == fair | ({first, second} if name in paper_plan.ON_PUBLISHED else {first})


def test_the_papers_protocol_has_dmin_with_and_without_its_memory_beside_the_baselines(plans: list[CellPlan]) -> None:
    tuned = [plan for plan in plans if plan.row.part == "tuned"]
    assert {plan.identity[:2] for plan in tuned} == {(data, split) for data, (split, _) in TUNED_SPLITS.items()}
    assert {plan.identity[3:5] for plan in tuned} == {(5, 1), (5, 5)}
    options = {plan.row.name: plan.prepared.config.options for plan in tuned}
    assert options["dmin+tuned"]["memory_capsules"] != options["dmin-4+tuned"]["memory_capsules"] == 4
    assert options["without-dmm+tuned"] == {**options["dmin+tuned"], "use_memory": False}
    assert options["without-dmm-4+tuned"] == {**options["dmin-4+tuned"], "use_memory": False}
    assert {"lwof", "induction", "prototypical", "matching", "dmin-plus"} <= {name.split("+")[0] for name in options}
    assert {(plan.prepared.config.stage1.epochs, plan.prepared.config.stage2.episodes) for plan in tuned} == {(2, 200)}


@pytest.mark.skipif("DMIN_DATA" not in os.environ, reason="needs the public sets under DMIN_DATA")
def test_published_splits_have_the_sizes_of_the_data() -> None:
    published = {data: dict(splits) for data, splits in paper_plan.PUBLISHED.items()}
    for data, (split, sizes) in TUNED_SPLITS.items():
        published[data][split] = sizes
    for data, splits in published.items():
        corpus = load_corpus(data)
        for name, sizes in splits.items():
            split = corpus.split(name)
            assert (len(split.train), len(split.valid), len(split.test)) == sizes


def test_chosen_settings_are_part_of_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_plan, "chosen_settings", lambda: chosen_settings(tmp_path / "none.yaml"))
    before = {plan.identity: plan for plan in cells() if plan.identity[0] == "debian"}
    file = tmp_path / "chosen.yaml"
    rows = (
        "dmin: {settings: {options.iterations: 2, stage2.learning_rate: 0.01, pooling: layers}, by_data: {hwu64: {}}}"
    )
    file.write_text(f"format: 1\nsearch: {{}}\nmethods:\n  {rows}\n")
    found = chosen_settings(file)
    monkeypatch.setattr(paper_plan, "chosen_settings", lambda: found)
    for plan in cells():
        row, config = plan.prepared.job.row, plan.prepared.config
        assert config.pooling == {"tuned": "cls", "layers": "layers"}.get(plan.row.setup, "mean")
        if plan.identity[0] == "debian":
            changed = before[plan.identity].prepared.key != plan.prepared.key
            assert changed == (row.method == "dmin")
        if row.name == "dmin" and plan.identity[0] == "debian":
            assert config.options == {"iterations": 2} and config.stage2.learning_rate == 0.01
        if row.name == "iterations-1":
            assert config.options == {"iterations": 1}  # what an ablation row changes stays
        if row.name == "dmin" and plan.identity[0] == "hwu64":  # one choice for all sets, not the one of this set
            assert config.options == {"iterations": 2}


def test_only_cells_of_today_are_current(plans: list[CellPlan], tmp_path: Path) -> None:
    one, two, three = plans[:3]
    path = tmp_path / "cells.jsonl"
    made = {}
    for plan, key in ((one, one.prepared.key), (two, "of other code")):
        data, split, row, way, shot, _ = plan.identity
        made[plan.identity] = line(data, split, row, [1], way, shot).model_copy(update={"key": key})
    paper_ledger.write(made, path)
    lines = paper_ledger.read(path)
    assert lines == made and set(paper_ledger.current(lines, plans)) == {one.identity}
    left = paper_ledger.missing(lines, plans)
    assert left[:2] == [two, three] and one not in left
    listed = paper_table.list_missing(left)
    needed = sum(plan.needed for plan in plans)
    assert listed[0] == f"{needed - 1} cells are missing that the comparison needs"
    assert f"{len(plans) - needed} cells are missing that would sharpen it" in "\n".join(listed)
    assert any(f"--set {three.identity[0]} --split {three.identity[1]} --row {three.identity[2]}" in x for x in listed)
    assert (
        "python -m reproduce.paper_table run --set hwu64 --split protaugment-01 --row dmin-4+tuned  # 2 cells" in listed
    )
    sharpening = sum(not plan.needed and plan.identity[:2] == ("debian", "fair-03") for plan in left)
    assert f"python -m reproduce.paper_table run --set debian --split fair-03  # {sharpening} cells" in listed
    assert len(listed) == len(set(listed))


def test_cells_are_filled_one_by_one_and_the_clock_stops(
    plans: list[CellPlan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cells.jsonl"

    def compute(filler: paper_ledger.Filler, plan: CellPlan) -> RawCell:
        data, split, row, way, shot, _ = plan.identity
        return line(data, split, row, [25], way, shot).model_copy(update={"key": plan.prepared.key})

    monkeypatch.setattr(paper_ledger.Filler, "compute", compute)
    said: list[str] = []
    options = {"say": said.append, "episodes": tmp_path}
    assert paper_ledger.fill(plans[:3], path, minutes=-1, **options) == 0  # type: ignore[arg-type]
    assert paper_ledger.fill(plans[:3], path, minutes=1, **options) == 3  # type: ignore[arg-type]
    assert len(said) == 3 and len(paper_ledger.current(paper_ledger.read(path), plans)) == 3
    asked = argparse.Namespace(set=["debian"], split=None, row=["dmin"], way=[5], needed=False)
    found = paper_table.wanted(plans, asked)
    assert {plan.identity[0::2][:2] for plan in found} == {("debian", "dmin")}
    asked.needed = True
    assert paper_table.wanted(plans, asked) == [plan for plan in found if plan.needed] != found


def test_cells_whose_answers_stay_are_taken_over_after_a_change_of_code(
    plans: list[CellPlan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = [plan for plan in plans if plan.row.name in ("nearest", "matching")][:40]
    path = tmp_path / "cells.jsonl"
    old = {plan.identity: line(*plan.identity[:3], [20], plan.identity[3], plan.identity[4]) for plan in mine}
    paper_ledger.write(old, path)

    def compute(filler: paper_ledger.Filler, plan: CellPlan) -> RawCell:
        changed = plan.row.name == "matching" and plan.identity[4] == 5
        return line(*plan.identity[:3], [21 if changed else 20], plan.identity[3], plan.identity[4])

    monkeypatch.setattr(paper_ledger.Filler, "compute", compute)
    paper_table.confirm(plans, path)
    kept = paper_ledger.current(paper_ledger.read(path), plans)
    # What changed 5-shot alone is not taken over because 1-shot is the same.
    same = {plan.identity for plan in mine if plan.row.name == "nearest" or plan.identity[4] == 1}
    assert set(kept) == same and len({name[4] for name in old}) == 2


def test_a_column_stands_on_the_splits_that_all_its_rows_have(tmp_path: Path) -> None:
    """Means over other splits would not compare: here LwoF lacks hwu64's hardest split."""
    lines = [
        cell for cell in made_up() if not (cell.data == "hwu64" and cell.split == "fair-01" and cell.row.name == "lwof")
    ]
    page = table_page(lines, (12, 40))
    assert (
        "Of the 40 that the comparison needs, 12 are missing" in page and page.count("### banking77") == 2
    )  # intervals, then deviations
    section = page.split("### hwu64")[1].split("###")[0]
    assert "|  | 5-way 1-shot, 2 splits |" in section and "5-way 1-shot, 3 splits" in page.split("### liu54")[1]
    assert "| DMIN | **74.0 [73.0, 75.0]** |" in section and "| LwoF | 70.0 [69.0, 71.0]" in section
    whole = page.split("### liu54")[1].split("###")[0]
    assert "| DMIN | **75.0 ± 6.6** |" in whole
    assert "Arrows: beside DMIN." in page and "Nadeau and Bengio" in page
    linked = re.findall(r"^- \[(.*)\]\(#(.*)\)$", page, re.MULTILINE)
    assert [title for title, _ in linked] == re.findall(r"^## (?!How to read)(.*)$", page, re.MULTILINE)
    assert dict(linked)["Class splits with one validation pool per set (fair)"] == (
        "class-splits-with-one-validation-pool-per-set-fair"
    )
    assert len(group(lines, "main", published=False)) == 18
    paper_table.make_table(lines, None, tmp_path)
    empty = imread(tmp_path / "paper-table.png")
    shown = [line("hwu64", "protaugment-01", "dmin", [30, 40]), line("hwu64", "protaugment-01", "lwof", [20], shot=5)]
    paper_table.make_table(shown, None, tmp_path)
    assert empty.std() > 0.05 and (imread(tmp_path / "paper-table.png") != empty).any()
    assert page and (tmp_path / "claims.md").is_file()


def test_parts_are_tested_against_the_dmin_of_their_own_kind() -> None:
    """The ablation beside the whole network, rows with names or a tuned encoder beside DMIN with the same."""
    high, low = [40 + episode % 3 for episode in range(40)], [20 + episode % 5 for episode in range(40)]
    shown = [line("hwu64", "fair-01", "without-dmm", low), line("hwu64", "fair-01", "dmin", high)]
    shown += [line("hwu64", "fair-01", "dmin", high, shot=5)]
    section = table_page(shown).split("## DMIN without its parts")[1]
    assert "| DMIN | **82.0 ± 0.5** | – |" in section and "| w/o DMM, 3 iterations | 44.0 ± 0.9↓ |" in section
    for ending, split in (("+names", "fair-01"), ("+unlabelled", "fair-01"), ("+tuned", "protaugment-01")):
        pair = [line("hwu64", split, name + ending, right) for name, right in (("dmin", low), ("lwof", high))]
        assert "82.0 ± 0.5↑" in table_page(pair)
    tuned = table_page(pair).split("## Encoder tuned")[1].split("###")[0]
    assert "but for LwoF" in tuned and "Arrows: beside DMIN." in tuned
    assert "**DMIN above LwoF**: in 0 of 1 cells" in claims_page(pair).split("## With the encoder tuned")[1]


def test_every_question_is_asked_of_rows_of_the_table() -> None:
    """No part of the table is without a question; readings stand beside DMIN as written, parts beside DMIN-plus."""
    asked = {row for _, claims in GROUPS for claim in claims for row in (claim.better, claim.worse)}
    assert asked <= set(ROWS)
    assert {ROWS[row].part for row in asked} == {row.part for row in ROWS.values()}
    high, low = [40 + episode % 3 for episode in range(40)], [20 + episode % 5 for episode in range(40)]
    rows = (("written", low), ("written-softmax-memory", high), ("dmin-plus+layers", high), ("plus-without-map", low))
    shown = [line("hwu64", "fair-01", row, right) for row, right in rows]
    page = table_page([*shown, line("hwu64", "fair-01", "matching+layers", low)])
    readings, layers, plus = (
        page.split(f"## {title}")[1] for title in ("Other readings", "Two layers", "DMIN-plus without")
    )
    assert "| as written, softmax over the memory | **82.0 ± 0.5↑** |" in readings.split("\n## ")[0]
    assert (
        "| DMIN-plus on two layers | **82.0 ± 0.5** |" in layers
        and "| Matching on two layers | 44.0 ± 0.9↓ |" in layers
    )
    assert "| w/o the map | 44.0 ± 0.9↓ |" in plus and "middle and the last layer" in plus.split("###")[0]


def test_cheap_cells_are_trained_three_times_and_rows_are_compared_on_shared_seeds(plans: list[CellPlan]) -> None:
    again = {plan.identity for plan in plans if plan.identity[5]}
    assert {name[5] for name in again} == {1, 2} and {name[0] for name in again} == set(SETS)
    assert {(name[1], name[3]) for name in again} == {("fair-01", 5)} and {name[2] for name in again} == set(SEEDED)
    assert all(plan.needed for plan in plans if plan.identity[5])
    lines = [line("hwu64", "fair-01", "dmin", [count, count], seed=seed) for seed, count in enumerate((30, 32, 34))]
    lines += [
        line("hwu64", "fair-02", "dmin", [40, 40]),
        *(line("hwu64", f"fair-0{n}", "lwof", [20, 22]) for n in (1, 2)),
    ]
    page = table_page(lines)
    assert "| DMIN | **70.0 [60.0, 80.0]** |" in page and "| DMIN | 70.00 ± 14.14 |" in page  # seed 0, as LwoF
    claim, other = Claim("dmin", "lwof", "one"), Claim("dmin", "matching", "two")
    lines += [line("hwu64", "fair-01", "matching", [30, 30], seed=seed) for seed in (0, 1)]
    said = verdicts(results(lines), [claim, other])
    assert said[claim].gains["hwu64", (5, 1)] == pytest.approx(0.28)  # 0.7 - 0.42, both of seed 0
    assert said[other].gains["hwu64", (5, 1)] == pytest.approx(0.02)  # seeds 0 and 1: 0.62 - 0.6
    seeds = page.split("## Training seeds")[1].split("## Settings")[0]
    assert "| 5-way 1-shot | hwu64, fair-01 |" in seeds and "| DMIN | 64.00 ± 4.00 |" in seeds and "LwoF" not in seeds
    assert "## Training seeds" not in table_page(lines[:1])


@pytest.mark.skipif("DMIN_DATA" not in os.environ, reason="needs the public sets under DMIN_DATA")
def test_texts_that_liu54_shares_with_the_searches_validation_are_as_many_as_the_page_says() -> None:
    hwu64, liu54 = (load_corpus(name) for name in ("hwu64", "liu54"))
    judged = {_plain(hwu64.texts[row]) for row in hwu64.rows_of(hwu64.split("fair-01").valid)}
    shares = {}
    for name in ("fair-01", "fair-02"):
        texts = [_plain(liu54.texts[row]) for row in liu54.rows_of(liu54.split(name).test)]
        shares[name] = sum(text in judged for text in texts) / len(texts)
    assert shares == {"fair-01": pytest.approx(0.1, abs=0.01), "fair-02": 0}
    page = " ".join((paper_plan.FOLDER / "README.md").read_text(encoding="utf-8").split())
    assert (
        "about a tenth of the texts of the test classes of liu54's `fair-01` stand there too (none of `fair-02`'s)"
        in page
    )


def _plain(text: str) -> str:
    """Without case and punctuation."""
    return " ".join(re.sub(r"[^\w ]", " ", text.lower()).split())


@pytest.mark.skipif(not paper_ledger.LEDGER.is_file(), reason="no cell is filled yet")
def test_every_figure_of_the_published_page_comes_from_the_ledger(plans: list[CellPlan]) -> None:
    """The committed pages and claims are what the ledger gives, digit for digit."""
    lines = paper_ledger.read()
    ordered = [lines[name] for name in sorted(lines)]
    folder = paper_ledger.LEDGER.parent
    assert (folder / "claims.md").read_text(encoding="utf-8") == claims_page(ordered)
    blocks = paper_table.blocks(ordered, plans)
    assert {page.parent.name for page, *_ in blocks} == {"reproduce", folder.parents[1].name} and len(blocks) == 9
    for path, name, made in blocks:
        assert f"<!-- {name} -->\n{made.rstrip()}\n<!-- end of {name} -->" in path.read_text(encoding="utf-8")
    page = (folder / "README.md").read_text(encoding="utf-8")
    needed, missing = map(int, re.findall(r"Of the (\d+) that the comparison needs, (\d+) are missing", page)[0])
    assert page == table_page(ordered, (missing, needed))
    assert len(lines) == sum(1 for _ in paper_ledger.LEDGER.open(encoding="utf-8"))


@pytest.mark.skipif(not paper_ledger.LEDGER.is_file(), reason="no cell is filled yet")
def test_no_cell_of_other_code_or_settings_is_in_the_committed_ledger() -> None:
    """After a change of the trainer or a method: `confirm` where results stay, `run` where not, `prune` for the rest."""
    lines = paper_ledger.read()
    stale = set(lines) - set(paper_ledger.current(lines, cells()))
    assert not stale, f"{len(stale)} stale cells, as {sorted(stale)[0]}"


@pytest.mark.skipif("DMIN_DATA" not in os.environ, reason="needs the public sets under DMIN_DATA")
def test_the_ledgers_episodes_are_those_of_todays_splits_and_texts() -> None:
    """A class split or a set that was made anew would draw others, under the same name."""
    hashes: dict[tuple[str, str, int, int], set[str]] = {}
    for cell in paper_ledger.read().values():
        hashes.setdefault((cell.data, cell.split, cell.way, cell.shot), set()).add(cell.episode_hash)
    corpora = {data: load_corpus(data) for data in {place[0] for place in hashes}}
    for (data, split, way, shot), stored in hashes.items():
        drawn = draw_episodes(corpora[data], corpora[data].split(split).test, way, shot, 10, paper_plan.EPISODES)
        assert stored == {drawn.hash}, (data, split, way, shot)


def test_rows_of_the_ledger_keep_their_raw_answers() -> None:
    cell = line("debian", "fair-01", "dmin", [0, 50, 25])
    assert replace(cell.result(), seconds=0).accuracies == [0, 1, 0.5]
