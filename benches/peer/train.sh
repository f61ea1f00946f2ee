#!/usr/bin/env bash
# Training steps and whole experiments, ours beside PyTorch's default and tuned, taking turns in one run:
#   benches/peer/train.sh DATA [WORKLOAD…]
# DATA holds Fashion-MNIST and California Housing in their official layouts (LAPWING_DATA serves too).
set -euo pipefail
cd "$(dirname "$0")/../.."
data=${1:-${LAPWING_DATA:?give the directory of the data sets}}
shift || true
venv=benches/peer/.venv
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
fi
"$venv/bin/python" -c 'import torch, loss_adapted_plasticity' 2>/dev/null ||
  "$venv/bin/python" -m pip install --quiet loss_adapted_plasticity==0.1.8 torch numpy
cargo build --quiet --release --bin lapwing
cargo build --quiet --release -p lapwing-ops --example peer-train --example peer-sequence
target=${CARGO_TARGET_DIR:-target}
"$venv/bin/python" benches/peer/train.py "$target/release/examples/peer-train" "$target/release/lapwing" "$data" "$@"
