"""What is asked of the paper's table: the paper's claims, and what is claimed of our rows, family by family."""

from __future__ import annotations

from dataclasses import dataclass

from reproduce.paper_rows import LAYERS, NAMED, TUNED, UNLABELLED, WRITTEN


@dataclass(frozen=True)
class Claim:
    """ "better" is better than "worse"."""

    better: str
    worse: str
    about: str


ORDERING = (
    Claim("dmin", "lwof", "DMIN above LwoF"),
    Claim("dmin", "hatt", "DMIN above HATT"),
    Claim("dmin", "induction", "DMIN above Ind. Net"),
    Claim("lwof", "relation", "LwoF above Rel. Net"),
    Claim("hatt", "relation", "HATT above Rel. Net"),
    Claim("induction", "relation", "Ind. Net above Rel. Net"),
    Claim("relation", "ataml", "Rel. Net above ATAML"),
    Claim("ataml", "finetune", "ATAML above fine-tuning (BERT in the paper; the head alone on a frozen encoder here)"),
)
ABLATION = (
    Claim("dmin", "without-dmm", "DMM helps: DMIN above DMIN without DMM"),
    Claim("dmin", "without-qim", "QIM helps: DMIN above DMIN without QIM"),
    Claim("dmin", "iterations-1", "three rounds above one"),
    Claim("dmin", "iterations-2", "three rounds above two"),
    Claim("dmin", "static-memory", "dynamic above static: DMM's couplings change above couplings at their first value"),
)
AS_WRITTEN = (
    Claim(WRITTEN, f"{WRITTEN}-without-dmm", "DMM helps"),
    Claim(WRITTEN, f"{WRITTEN}-without-qim", "QIM helps"),
    Claim(WRITTEN, f"{WRITTEN}-iterations-1", "three rounds above one"),
    Claim(WRITTEN, f"{WRITTEN}-static-memory", "dynamic above static"),
    Claim("dmin", WRITTEN, "DMIN with the searched settings above DMIN as written"),
)
PLAIN = (
    Claim("dmin", "nearest", "DMIN above the nearest prototype, which trains nothing"),
    Claim("dmin", "logistic", "DMIN above logistic regression on the support"),
    Claim("dmin", "prototypical", "DMIN above Prototypical"),
    Claim("dmin", "matching", "DMIN above Matching"),
)
PLUS_AGAINST_ALL = tuple(
    Claim("dmin-plus", worse, f"DMIN-plus above {title}")
    for worse, title in (
        ("dmin", "DMIN"),
        ("relation", "Rel. Net"),
        ("induction", "Ind. Net"),
        ("hatt", "HATT"),
        ("lwof", "LwoF"),
        ("prototypical", "Prototypical"),
        ("matching", "Matching"),
        ("nearest", "the nearest prototype"),
        ("logistic", "logistic regression on the support"),
    )
)
NAMES_CLAIMS = (
    Claim("nearest" + NAMED, "nearest", "names help the nearest prototype"),
    Claim("dmin" + NAMED, "dmin", "names help DMIN"),
    Claim("dmin" + NAMED, "lwof" + NAMED, "with names: DMIN above LwoF"),
    Claim("dmin" + NAMED, "nearest" + NAMED, "with names: DMIN above the nearest prototype"),
    Claim("dmin-plus" + NAMED, "logistic" + NAMED, "with names: DMIN-plus above logistic regression"),
)
UNLABELLED_CLAIMS = (
    Claim("nearest" + UNLABELLED, "nearest", "unlabelled queries help the nearest prototype"),
    Claim("dmin" + UNLABELLED, "dmin", "unlabelled queries help DMIN"),
    Claim("dmin" + UNLABELLED, "lwof" + UNLABELLED, "with unlabelled queries: DMIN above LwoF"),
    Claim("dmin" + UNLABELLED, "nearest" + UNLABELLED, "with unlabelled queries: DMIN above the nearest prototype"),
    Claim(
        "dmin-plus" + UNLABELLED,
        "logistic" + UNLABELLED,
        "with unlabelled queries: DMIN-plus above logistic regression",
    ),
)
TUNED_CLAIMS = tuple(
    Claim(better + TUNED, worse + TUNED, about)
    for better, worse, about in (
        ("dmin", "lwof", "DMIN above LwoF"),
        ("dmin", "induction", "DMIN above Ind. Net"),
        ("dmin", "prototypical", "DMIN above Prototypical"),
        ("dmin", "without-dmm", "DMM helps: DMIN above DMIN without DMM"),
        (WRITTEN, "lwof", "DMIN as written above LwoF"),
        (WRITTEN, f"{WRITTEN}-without-dmm", "DMM helps DMIN as written"),
        ("dmin-4", "without-dmm-4", "DMM helps with 4 capsules in both modules"),
        ("dmin", "dmin-4", "the searched capsules above 4 in both modules"),
        ("dmin-plus", "dmin", "DMIN-plus above DMIN"),
    )
)
LAYERS_CLAIMS = (
    Claim("dmin-plus" + LAYERS, "dmin-plus", "a second layer helps DMIN-plus"),
    Claim("nearest" + LAYERS, "nearest", "a second layer helps the nearest prototype"),
    Claim("logistic" + LAYERS, "logistic", "a second layer helps logistic regression"),
    Claim("dmin-plus" + LAYERS, "matching" + LAYERS, "on two layers: DMIN-plus above Matching"),
    Claim("dmin-plus" + LAYERS, "prototypical" + LAYERS, "on two layers: DMIN-plus above Prototypical"),
    Claim("dmin-plus" + LAYERS, "lwof" + LAYERS, "on two layers: DMIN-plus above LwoF"),
    Claim("dmin-plus" + LAYERS, "logistic" + LAYERS, "on two layers: DMIN-plus above logistic regression"),
)
PLUS = "dmin-plus" + LAYERS
PLUS_CLAIMS = (
    Claim(PLUS, "plus-without-map", "the map helps"),
    Claim(PLUS, "plus-without-memory", "the memory helps"),
    Claim(PLUS, "plus-without-query", "query weights help"),
    Claim("plus-centred", PLUS, "centring helps"),
    Claim("plus-contrast", PLUS, "the contrast of the classes helps"),
)
READINGS_CLAIMS = (
    Claim(f"{WRITTEN}-softmax-memory", WRITTEN, "softmax over the memory above softmax over the capsules"),
    Claim(WRITTEN, f"{WRITTEN}-capsules-4", "64 capsules in DMM above 4"),
    Claim(f"{WRITTEN}-capsules-4", f"{WRITTEN}-shared", "weights of their own above shared ones, 4 capsules in both"),
    Claim(WRITTEN, f"{WRITTEN}-random-start", "identity as initialisation above random"),
    Claim(f"{WRITTEN}-masked-rows", WRITTEN, "own base rows masked in training above seen"),
    Claim(WRITTEN, f"{WRITTEN}-frozen-memory", "a memory that stage 2 tunes above one that it leaves"),
)
OF_PLUS = (
    "DMIN-plus, ours, beside every other row",
    "Two layers of the encoder for all rows",
    "DMIN-plus without its parts, on two layers",
)
GROUPS = (  # each is a family for Holm's correction
    ("The order of the rows", ORDERING),
    ("The ablation of DMIN with the searched settings", ABLATION),
    ("The ablation of DMIN as written: nothing before the routing, 64 capsules in DMM, 4 in QIM", AS_WRITTEN),
    ("What the paper leaves open, asked of DMIN as written", READINGS_CLAIMS),
    ("DMIN beside rows that the paper does not have", PLAIN),
    *zip(OF_PLUS, (PLUS_AGAINST_ALL, LAYERS_CLAIMS, PLUS_CLAIMS), strict=True),
    ("Rows that get the classes' names", NAMES_CLAIMS),
    ("Rows that see an episode's queries as unlabelled texts", UNLABELLED_CLAIMS),
    ("With the encoder tuned in both stages", TUNED_CLAIMS),
)
