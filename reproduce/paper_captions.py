"""What is said above the tables and claims of the paper's pages: how to read them, and what the rows of a section get."""

from __future__ import annotations

from reproduce.paper_plan import EPISODES, TUNED_BASE

HOW_TO_READ = f"""## How to read the tables

Accuracy in %, {EPISODES} stored test episodes per cell and split, 10 queries per class. A column's rows stand on the
same splits, as many as its title says. **Bold**: the highest mean of its column, which alone shows no difference.
–: not computed yet, or not possible (too few classes).

With one split, ± is the 95 % confidence interval over its episodes; with three or more, over the splits, with the
variance corrected for the classes that splits share (Nadeau and Bengio, 2003). With two splits there is one degree of
freedom, and an interval would be wider than the scale: [ ] holds the mean of each.

↑ significantly better, ↓ significantly worse than the reference row of the section: p < 0.05, two-tailed, after
Holm's correction over all tests of the section. With one split the tests are over its episodes (permutation test),
which speaks of that split's classes and of one training alone. With several they are over the splits, with the
corrected variance, and two splits hardly ever show a difference: **there, no arrow does not mean no difference**.
[claims.md](claims.md) tests over the nine sets.

Every row has the settings that are listed at the end; those that the search chose for DMIN centre the vectors, map
them and scale them to norm 1 before the routing, which the paper does not. At most 1,000 training episodes. Where a
section says nothing else, the encoder is all-MiniLM-L6-v2, frozen (`tune none`), mean pooling: the same vectors for
all rows (ATAML: the same states of the tokens).

Rows differ from what their papers describe where the search chose so. Rel. Net and Ind. Net, which project the vectors to
256 numbers and normalise them, start their tensor layers near the identity and learn at a rate of 0.00003. LwoF has no loss
over the base classes. LwoF, Ind. Net, HATT, Prototypical and DMIN have a learned linear map before them; nearest prototype,
logistic regression, Matching, Rel. Net, Ind. Net, HATT and DMIN subtract the mean of the training classes' texts.
"""
WRITTEN_ROWS = """
DMIN as written has the paper's equations: vectors go into the routing as they are, the softmax is over the capsules. What
the paper does not give: 64 capsules in DMM and 4 in QIM, a learning rate of 0.01 for τ, maps that start near the identity,
and W_base scaled to the mean norm of the vectors. It had no search of its own: capsules in DMM and τ's rate are what the
search found for DMIN with a map and centring.
"""
TWO_LAYERS = """
Rows read the middle and the last layer of the encoder, side by side, as DMIN-plus does by default; settings as the
search with one layer chose them.
"""
WITH_GRAPH = """
Rows see all queries of an episode at once: each method scores as it always does, then a graph of nearest neighbours
over queries and examples, the same for all rows, has its say (`reproduce/paper_unlabelled.py`). An episode has as
many queries of each class, which helps here more than an uneven pile would.
"""
LEARNING = f"""
The paper's protocol (`tune full`, `[CLS]`): the encoder is tuned in both stages, but for LwoF, which leaves it as
stage 1 made it. {TUNED_BASE["stage1"]["epochs"]} epochs in stage 1, at most {TUNED_BASE["stage2"]["episodes"]}
training episodes in stage 2. Settings as the search with the frozen encoder chose them, because no search is affordable
here; `dmin train --tune full` begins with the methods' own defaults. The rows with 4 capsules in both modules, which is
the default, keep the rest of DMIN's settings here, but for the softmax, which is over the capsules.
"""
HOW_CLAIMS_ARE_ASKED = """# The paper's claims, cell by cell

Made by `python -m reproduce.paper_table table` from the ledger. Each figure is a difference of accuracies in points, the
mean over the class splits (and training seeds) that have both rows; positive where the claim holds. Splits that come
with the data count only for rows that stand on no other (ATAML, fine-tuning, a tuned encoder). The mean difference of a
claim is over its sets, each of which is the mean of its cells.

p: Wilcoxon's signed-rank test over the means of the sets, two-tailed, after Holm's correction over the claims of a
section, measured or not. *Too few sets to decide*: even if all measured sets agreed, p would not be below 0.05. With
fewer than {enough} sets there is no such test, and * marks a difference beyond chance over the episodes of a cell's one
split (permutation test, two-tailed, p < 0.05 after Holm over the section): it speaks of that split's classes and of one
training alone. *Equal* cells have no difference at all; with one example per class some parts of a method cannot make one.
Four families got some of their claims when part of their cells was known: *DMIN beside rows that the paper does not have*,
*DMIN-plus beside every other row*, *Rows that get the classes' names* and *With the encoder tuned in both stages*.

The searched settings give QIM one capsule. With one example per class its routing then cannot change a cosine, and with
five it hardly does: in the first ablation *three rounds above one* and *dynamic above static* are nearly one measurement
(that of DMM's rounds), and *QIM helps* compares a learned map. The ablation of DMIN as written, whose QIM has four
capsules, asks them again.

DMIN-plus is not as blind to these sets as the other rows: some of its constants were chosen on validation classes of
published splits, many of which are test classes of fair splits ([how](../ACCURACY.md)).
"""
OF_A_PART = {
    "written": WRITTEN_ROWS, "readings": WRITTEN_ROWS, "unlabelled": WITH_GRAPH, "layers": TWO_LAYERS,
    "plus": TWO_LAYERS, "tuned": LEARNING,
}  # fmt: skip


def caption(part: str, reference: str | None) -> str:
    """What is a section's own: what its rows get, and the row that arrows are about, if there is one."""
    arrows = f"Arrows: beside {reference}." if reference else ""
    return "\n".join(said for said in (OF_A_PART.get(part, "").strip(), arrows) if said)
