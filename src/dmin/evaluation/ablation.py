"""The rows of the paper's ablation, of the claim behind it (dynamic beats static), of its readings, and of DMIN-plus."""

from __future__ import annotations

from dmin.evaluation.comparison import Row

PAPER_ROWS = (
    Row("without-dmm", "dmin", {"use_memory": False}, "w/o DMM, 3 iterations"),
    Row("without-qim", "dmin", {"use_query": False}, "w/o QIM, 3 iterations"),
    Row("iterations-1", "dmin", {"iterations": 1}, "DMIN, 1 iteration"),
    Row("iterations-2", "dmin", {"iterations": 2}, "DMIN, 2 iterations"),
    Row("dmin", "dmin", {}, "DMIN, 3 iterations"),
    Row("static-memory", "dmin", {"memory_iterations": 1}, "static memory (DMM's couplings stay at their first value)"),
)
PLUS_ROWS = (
    Row("dmin-plus", "dmin-plus", {}, "DMIN-plus"),
    Row("without-layers", "dmin-plus", {}, "w/o the middle layer (mean pooling)", {"pooling": "mean"}),
    Row("without-map", "dmin-plus", {"project": False}, "w/o the map"),
    Row("without-centre", "dmin-plus", {"centre": False}, "w/o centring"),
    Row("without-memory", "dmin-plus", {"use_memory": False}, "w/o the memory"),
    Row("without-query", "dmin-plus", {"use_query": False}, "w/o the query's say (prototypes)"),
    Row("untrained", "dmin-plus", {"project": False, "use_memory": False}, "the query's say alone"),
    Row("contrast", "dmin-plus", {"contrast": 20}, "with the contrast of the classes"),
)
READING_ROWS = (
    Row("softmax-memory", "dmin", {"softmax_over": "memory"}, "softmax over memory"),
    Row("capsules-1", "dmin", {"capsules": 1}, "1 capsule"),
    Row("capsules-2", "dmin", {"capsules": 2}, "2 capsules"),
    Row("capsules-8", "dmin", {"capsules": 8}, "8 capsules"),
    Row("shared-routing", "dmin", {"share_routing": True}, "shared routing weights"),
    Row("masked-rows", "dmin", {"mask_own_rows": True}, "own base rows masked in training"),
    Row("frozen-memory", "dmin", {"tune_memory": False}, "W_base kept as stage 1 left it"),
)
