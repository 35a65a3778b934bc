"""The rows of the paper's table: the paper's, the plain ones, DMIN's parts and readings, and rows that get more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dmin.evaluation.ablation import PAPER_ROWS
from dmin.evaluation.comparison_plan import TableRow

NAMED = "+names"  # ends the name of a row that gets the classes' names as one more example
WRITTEN = "written"  # begins the name of a row of DMIN with the paper's equations alone
UNLABELLED = "+unlabelled"  # ends the name of a row that sees an episode's queries as unlabelled texts
LAYERS = "+layers"  # ends the name of a row on two layers of the encoder
TUNED = "+tuned"  # ends the name of a row whose encoder is tuned in both stages, as in the paper


@dataclass(frozen=True)
class Row:
    """A row of the table: its place in the order of cost, and whether it stands on the published splits only."""

    table_row: TableRow
    cost: int
    published_only: bool = False
    part: str = "main"  # main, ablation, written, readings, plus, or a setup of its own

    @property
    def setup(self) -> str:
        """Rows of one setup share encoder, vectors and scoring: "plain", "names", "unlabelled", "layers" or "tuned"."""
        if self.part == "plus":
            return "layers"
        return self.part if self.part in ("names", "unlabelled", "layers", "tuned") else "plain"

    @property
    def name(self) -> str:
        return self.table_row.name


def _rows() -> dict[str, Row]:
    methods = {
        "finetune": 6, "ataml": 10, "relation": 7, "induction": 8, "hatt": 6, "lwof": 4, "dmin": 5, "dmin-plus": 4,
        "prototypical": 3, "matching": 3, "nearest": 0, "logistic": 1,
    }  # fmt: skip
    published = ("finetune", "ataml")
    rows = [Row(TableRow(name, name), cost, name in published) for name, cost in methods.items()]
    rows += [Row(row, 9, part="ablation") for row in PAPER_ROWS if row.name != "dmin"]
    rows += [
        Row(TableRow(WRITTEN + ending, "dmin", {**AS_WRITTEN, **options}, title), 9, part=part)
        for part, given in (("written", WRITTEN_ROWS), ("readings", READINGS))
        for ending, options, title in given
    ]
    named = ("dmin", "dmin-plus", "matching", "lwof", "nearest", "logistic")
    rows += [Row(TableRow(name + NAMED, name), 11 + methods[name], part="names") for name in named]
    rows += [Row(TableRow(name + UNLABELLED, name), 11 + methods[name], part="unlabelled") for name in named]
    layered = ("dmin-plus", "prototypical", "matching", "lwof", "nearest", "logistic")
    rows += [Row(TableRow(name + LAYERS, name), 11 + methods[name], part="layers") for name in layered]
    rows += [
        Row(TableRow("plus" + ending, "dmin-plus", options, title), 11 + methods["dmin-plus"], part="plus")
        for ending, options, title in PLUS_PARTS
    ]
    rows += [
        Row(TableRow(name + TUNED, method, options, title), 40, True, "tuned")
        for name, method, options, title in TUNED_ROWS
    ]
    return {row.name: row for row in rows}


# The paper's equations: no map, centring or scaling before the routing, and the softmax to the letter.
# Its capsules, which the paper leaves open, are 64 in DMM and 4 in QIM, with a rate for tau.
AS_WRITTEN: dict[str, Any] = {
    "memory_capsules": 64, "query_capsules": 4, "softmax_over": "capsules", "tau_learning_rate": 1e-2,
    "input_map": False, "input_unit": False, "input_centre": False,
}  # fmt: skip
WRITTEN_ROWS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("", {}, "DMIN as written"),
    ("-without-dmm", {"use_memory": False}, "as written, w/o DMM"),
    ("-without-qim", {"use_query": False}, "as written, w/o QIM"),
    ("-iterations-1", {"iterations": 1}, "as written, 1 iteration"),
    ("-static-memory", {"memory_iterations": 1}, "as written, static memory"),
)
# What the paper leaves open, one choice at a time.
READINGS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("-softmax-memory", {"softmax_over": "memory"}, "as written, softmax over the memory"),
    ("-capsules-4", {"memory_capsules": 4}, "as written, 4 capsules in DMM"),
    ("-shared", {"memory_capsules": 4, "share_routing": True}, "as written, 4 capsules in DMM, shared routing weights"),
    ("-random-start", {"initialisation": "random"}, "as written, random initialisation of the routing"),
    ("-masked-rows", {"mask_own_rows": True}, "as written, own base rows masked in training"),
    ("-frozen-memory", {"tune_memory": False}, "as written, W_base kept as stage 1 left it"),
)
PLUS_PARTS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("-without-map", {"project": False}, "w/o the map"),
    ("-without-memory", {"use_memory": False}, "w/o the memory"),
    ("-without-query", {"use_query": False}, "w/o query weights (prototypes)"),
    ("-untrained", {"project": False, "use_memory": False}, "query weights alone"),
    ("-centred", {"centre": True}, "with centring"),
    ("-contrast", {"contrast": 20}, "with the contrast of the classes"),
)
FOUR = {"memory_capsules": 4, "query_capsules": 4, "softmax_over": "capsules"}
TUNED_ROWS: tuple[tuple[str, str, dict[str, Any], str | None], ...] = (  # those that say most first
    ("lwof", "lwof", {}, None),
    ("dmin", "dmin", {}, None),
    ("without-dmm", "dmin", {"use_memory": False}, "DMIN w/o DMM"),
    (WRITTEN, "dmin", AS_WRITTEN, "DMIN as written"),
    (WRITTEN + "-without-dmm", "dmin", {**AS_WRITTEN, "use_memory": False}, "as written, w/o DMM"),
    ("dmin-4", "dmin", FOUR, "DMIN, 4 capsules in both modules"),
    ("without-dmm-4", "dmin", {**FOUR, "use_memory": False}, "DMIN w/o DMM, 4 capsules in QIM"),
    ("prototypical", "prototypical", {}, None),
    ("dmin-plus", "dmin-plus", {}, None),
    ("matching", "matching", {}, None),
    ("induction", "induction", {}, None),
)
ROWS = _rows()
