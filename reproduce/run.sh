#!/usr/bin/env bash
# Every table of this folder, on two cores. DMIN_DATA must name the folder of the public sets.
# Each command can be interrupted and goes on where it stopped. Usage: reproduce/run.sh [NAME ...]
set -euo pipefail
cd "$(dirname "$0")/.."
out=runs/reproduce
splits=protaugment-01,protaugment-02,protaugment-03,protaugment-04,protaugment-05
three=protaugment-01,protaugment-02,protaugment-03
some=dmin-plus,dmin,prototypical,matching,lwof,nearest,logistic

keep() { # the table of a run, kept in this folder
    cp "$out/$1/table.md" "reproduce/$1.md"
    cp "$out/$1/table.csv" "reproduce/$1.csv"
}

run() {
    case "$1" in
    banking77) dmin compare --data banking77 --split protaugment-01 --methods all --reference dmin --tune none --out $out/banking77 ;;
    hwu64) dmin compare --data hwu64 --split protaugment-01 --methods all --reference dmin --tune none --out $out/hwu64 ;;
    clinc150) dmin compare --data clinc150 --split base100 --methods all --reference dmin --tune none --out $out/clinc150 ;;
    banking77-splits | hwu64-splits | liu54-splits | clinc150-splits)
        dmin compare --data "${1%-splits}" --split $splits --methods $some --reference dmin-plus --tune none --out "$out/$1"
        ;;
    ablation) dmin ablate --data banking77 --split protaugment-01 --out $out/ablation ;;
    banking77-layers | hwu64-layers | liu54-layers | clinc150-layers) # baselines on the vectors of DMIN-plus
        dmin compare --data "${1%-layers}" --split $splits --methods dmin-plus,matching,nearest,logistic --shot 1 \
            --reference dmin-plus --set pooling=layers --tune none --out "$out/$1"
        ;;
    banking77-names | hwu64-names) # every row with the classes' names
        dmin compare --data "${1%-names}" --split $three --methods dmin-plus,matching,lwof,nearest,logistic \
            --way 5 --reference dmin-plus --names --tune none --out "$out/$1"
        ;;
    ablation-plus-banking77 | ablation-plus-hwu64)
        dmin ablate --data "${1#ablation-plus-}" --split $three --method dmin-plus --out "$out/$1"
        ;;
    tsne)
        dmin train --method dmin --data clinc150 --split base100 --way 10 --shot 5 --out $out/tsne-run --overwrite
        dmin figure tsne $out/tsne-run --out reproduce/tsne.png
        return
        ;;
    full)
        dmin compare --data banking77 --split protaugment-01 --methods dmin,prototypical,induction,lwof --way 5 --shot 1 --reference dmin \
            --tune full --train-episodes 400 --set stage1.epochs=3 --out $out/full
        ;;
    full-plus-banking77 | full-plus-hwu64)
        dmin compare --data "${1#full-plus-}" --split protaugment-01 --methods dmin-plus,dmin,prototypical,lwof --way 5 --shot 1 \
            --reference dmin-plus --tune full --train-episodes 200 --set stage1.epochs=2 --out "$out/$1"
        ;;
    bilstm)
        for encoder in bilstm default; do
            dmin compare --data banking77 --split protaugment-01 --methods relation,induction --way 5 --shot 1 --tune full \
                --train-episodes 400 --set stage1.epochs=3 --encoder $encoder --reference induction --out "$out/bilstm-$encoder"
            keep "bilstm-$encoder"
        done
        return
        ;;
    *) echo "unknown: $1" >&2 && exit 2 ;;
    esac
    keep "$1"
}

PATH="$PWD/.venv/bin:$PATH"
for name in "${@:-banking77 hwu64 clinc150 banking77-splits hwu64-splits liu54-splits clinc150-splits banking77-layers hwu64-layers liu54-layers clinc150-layers banking77-names hwu64-names ablation ablation-plus-banking77 ablation-plus-hwu64 tsne full full-plus-banking77 full-plus-hwu64 bilstm}"; do
    for one in $name; do run "$one"; done
done
