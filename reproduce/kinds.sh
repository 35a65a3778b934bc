#!/usr/bin/env bash
# Everything of KINDS.md, leaderboard.md and encoders.md: vectors, constants that the package ships, measurements, pages.
# DMIN_DATA must name the folder of the public sets. One thread: two wait for each other on a busy machine.
# Usage: reproduce/kinds.sh [encode | constants | measure | trials | pages ...]
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
: "${DMIN_DATA:?must name the folder of the public sets}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
kinds() { python -m reproduce.kinds "$@"; }

encode() { kinds encode; }

constants() { kinds fit-constants; } # src/dmin/model/default_head

measure() {
    kinds cells
    kinds refusal
    kinds board
    kinds uneven debian banking77 starter
    kinds unlabelled
    kinds pile
    python -m reproduce.encoders kinds
}

trials() { # on development tasks only
    python -m reproduce.kinds_trials memory
    python -m reproduce.kinds_votes run
}

pages() {
    kinds table
    python -m reproduce.kinds_trials table
    python -m reproduce.kinds_votes table
    python -m reproduce.leaderboard
    python -m reproduce.pictures names explanation
}

for step in "${@:-encode constants measure trials pages}"; do
    for one in $step; do "$one"; done
done
