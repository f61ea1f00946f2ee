#!/usr/bin/env bash
# One step of the rule, ours beside the authors' package, both from one run: benches/peer/step.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=benches/peer/.venv
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
fi
"$venv/bin/python" -c 'import torch, loss_adapted_plasticity' 2>/dev/null ||
  "$venv/bin/python" -m pip install --quiet loss_adapted_plasticity==0.1.8 torch numpy
cargo build --quiet --release -p lapwing-core --example peer-step
"$venv/bin/python" benches/peer/step.py "${CARGO_TARGET_DIR:-target}/release/examples/peer-step"
