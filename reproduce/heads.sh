#!/usr/bin/env bash
# The head of version 0.1 (DMIN-plus), which comes with the package, and its siblings: each sibling is trained without the set that it is measured on
# (hwu64 stands for liu54 too, which overlaps it and is never used), and all of them without any leaderboard test text.
# DMIN_DATA must name the folder of the public sets. Usage: reproduce/heads.sh [train | measure | ship]
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
out=runs/heads
: "${DMIN_DATA:?must name the folder of the public sets}"
board() { echo "$DMIN_DATA/$1/leaderboard/$2.jsonl"; }
tests="$(board banking77 test),$(board clinc150 test),$(board hwu64 test)"

head() { # NAME DATA SIZES
    dmin train --config reproduce/head.yaml --data "$2" --split-sizes "$3" --exclude "$tests" --out "$out/$1" --overwrite
}

train() {
    head without-banking77 clinc150,hwu64 171/43/0
    head without-clinc150 banking77,hwu64 113/28/0
    head without-hwu64 banking77,clinc150 182/45/0
    head shipped banking77,clinc150,hwu64 233/58/0
}

both() { # SET SHOT EXAMPLES: the sibling, and the encoder as it is, with and without names
    for names in names no-names; do
        dmin evaluate "$out/without-$1" --examples "$3" --test "$(board $1 test)" --$names --out "$out/leaderboard/$1-$2-$names"
        dmin evaluate nearest --examples "$3" --test "$(board $1 test)" --$names --out "$out/leaderboard/plain-$1-$2-$names"
    done
}

measure() { # all classes at once, 1, 5 and 10 examples; then out-of-scope texts
    for set in banking77 clinc150 hwu64; do
        python reproduce/first_examples.py "$(board $set train_5)" "$out/$set-train_1.jsonl"
        both $set 1 "$out/$set-train_1.jsonl" # where names matter most
        for shot in 5 10; do both $set $shot "$(board $set train_$shot)"; done
    done
    dmin evaluate "$out/without-clinc150" --examples "$(board clinc150 train_5)" --test "$(board clinc150 test)" \
        --outside "$DMIN_DATA/clinc150/oos.jsonl" --reject auto --out "$out/leaderboard/refusal"
    cp "$out/leaderboard/banking77-5-names/reliability.png" reproduce/reliability-dmin-plus.png
    cp "$out/leaderboard/refusal/refusal.png" reproduce/refusal-dmin-plus.png
    python reproduce/leaderboard_dmin_plus.py "$out/leaderboard" reproduce
}

ship() {
    # The card carries the siblings' numbers: the first table of the leaderboard.
    awk 'FNR == NR { if (/^\|/ && !done) { table = table $0 "\n" } else if (table) { done = 1 } next }
         /^SIBLINGS$/ { printf "%s", table; next } { print }' reproduce/leaderboard-dmin-plus.md reproduce/shipped-notes.md > "$out/notes.md"
    dmin model head "$out/shipped" --out src/dmin/model/shipped --max-length 256 --notes "$out/notes.md"
}

for step in "${@:-train measure ship}"; do
    for one in $step; do "$one"; done
done
