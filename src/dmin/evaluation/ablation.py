"""The rows of the paper's ablation, of the claim behind it (dynamic beats static), of its readings, and of DMIN-plus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dmin.evaluation.comparison_plan import TableRow

PAPER_ROWS = (
    TableRow("without-dmm", "dmin", {"use_memory": False}, "w/o DMM, 3 iterations"),
    TableRow("without-qim", "dmin", {"use_query": False}, "w/o QIM, 3 iterations"),
    TableRow("iterations-1", "dmin", {"iterations": 1}, "DMIN, 1 iteration"),
    TableRow("iterations-2", "dmin", {"iterations": 2}, "DMIN, 2 iterations"),
    TableRow("dmin", "dmin", {}, "DMIN, 3 iterations"),
    TableRow(
        "static-memory", "dmin", {"memory_iterations": 1}, "static memory (DMM's couplings stay at their first value)"
    ),
)
PLUS_ROWS = (
    TableRow("dmin-plus", "dmin-plus", {}, "DMIN-plus"),
    TableRow("without-layers", "dmin-plus", {}, "w/o the middle layer (mean pooling)", {"pooling": "mean"}),
    TableRow("without-map", "dmin-plus", {"project": False}, "w/o the map"),
    TableRow("without-centre", "dmin-plus", {"centre": False}, "w/o centring"),
    TableRow("without-memory", "dmin-plus", {"use_memory": False}, "w/o the memory"),
    TableRow("without-query", "dmin-plus", {"use_query": False}, "w/o query weights (prototypes)"),
    TableRow("untrained", "dmin-plus", {"project": False, "use_memory": False}, "query weights alone"),
    TableRow("contrast", "dmin-plus", {"contrast": 20}, "with the contrast of the classes"),
)
READING_ROWS = (
    TableRow("softmax-capsules", "dmin", {"softmax_over": "capsules"}, "softmax over capsules"),
    TableRow("softmax-memory", "dmin", {"softmax_over": "memory"}, "softmax over memory"),
    *(
        TableRow(f"capsules-{count}", "dmin", {"capsules": count}, f"{count} capsule{'s' if count > 1 else ''} in both")
        for count in (1, 2, 4, 8)
    ),
    TableRow("random-start", "dmin", {"initialisation": "random"}, "random initialisation of the routing"),
    TableRow("shared-routing", "dmin", {"share_routing": True, "capsules": 4}, "shared routing weights, 4 capsules"),
    TableRow("masked-rows", "dmin", {"mask_own_rows": True}, "own base rows masked in training"),
    TableRow("frozen-memory", "dmin", {"tune_memory": False}, "W_base kept as stage 1 left it"),
)


def with_options(row: TableRow, options: Mapping[str, Any]) -> TableRow:
    """The row with options that all rows share; what the row is about stays as it says."""
    about = {"memory_capsules", "query_capsules"} if "capsules" in row.options else set()
    shared = {name: value for name, value in options.items() if name not in about}
    return replace(row, options={**shared, **row.options})
