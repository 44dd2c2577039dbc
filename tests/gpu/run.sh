#!/usr/bin/env bash
# The whole GPU tier, unattended, in under nine minutes: the tests of tests/gpu, the digits example, and the benchmarks of
# dispatch and compiled gradients beside jax on the same device. Prints what passed, what failed and how fast.
#
#     bash tests/gpu/run.sh                a machine with a GPU and a package registry: makes its own environment
#     PYTHON=python3 bash tests/gpu/run.sh an interpreter that has jaxlib, the CUDA plugin, jax and pytest already
#     TAPELESS_TIER=cpu bash tests/gpu/run.sh   the CPU in the GPU's place: shows that the script works
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/tests/find_python.sh"
version=0.11.2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tier=${TAPELESS_TIER:-gpu}
export TAPELESS_TIER=$tier TAPELESS_CACHE=0 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
export XLA_PYTHON_CLIENT_PREALLOCATE=false JAX_PLATFORMS= TF_CPP_MIN_LOG_LEVEL=1 XLA_FLAGS=${XLA_FLAGS:-}
export MPLCONFIGDIR="$work/matplotlib" MPLBACKEND=Agg
[ "$tier" != cpu ] || export JAX_PLATFORMS=cpu
failed=()

step() { printf '\n== %s (%s s)\n' "$*" "$SECONDS"; }

# Runs one part with a limit in seconds; what fails is listed at the end, and the rest runs all the same.
part() {
    local name=$1 limit=$2
    shift 2
    step "$name"
    timeout --kill-after=10 "$limit" "$@" || failed+=("$name (exit $?)")
}

has_plugin() { "$1" -c 'import importlib.util as u, jaxlib, jax, pytest; assert u.find_spec("jax_plugins.xla_cuda13")' 2>/dev/null; }

environment() {
    if [ -n "${PYTHON:-}" ]; then echo "$PYTHON"; return; fi
    if has_plugin python3; then echo python3; return; fi
    local found
    found=$(find_python 3.12) || { echo "no python3.12, and no python3 with the CUDA plugin" >&2; return 1; }
    "$found" -m venv "$work/venv" >&2 &&
        "$work/venv/bin/python" -m pip install -q "jaxlib==$version" "jax[cuda13]==$version" pytest pytest-xdist \
            hypothesis scikit-learn matplotlib tqdm >&2 || return 1
    echo "$work/venv/bin/python"
}

step "environment"
python=$(environment) || exit 1
# The package as links, so that nothing has to be built: api/ is `tapeless`, the other folders its parts.
mkdir -p "$work/site/tapeless"
ln -s "$root"/api/* "$work/site/tapeless/"
ln -s "$root/tracer" "$root/interpreters" "$root/lowering" "$work/site/tapeless/"
export PYTHONPATH="$work/site${PYTHONPATH:+:$PYTHONPATH}"
cd "$root"
"$python" - <<'END' || exit 1
import sys, jaxlib, numpy, tapeless as tl
print(f"Python {sys.version.split()[0]}, jaxlib {jaxlib.__version__}, numpy {numpy.__version__}, {tl.__file__}")
END
command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader

export TAPELESS_PLATFORM=cpu # the tests ask for their device
part "tests" 300 "$python" -m pytest tests/gpu -q -n "${WORKERS:-4}" -p no:cacheprovider -W default --durations=8
export TAPELESS_PLATFORM=$tier
part "digits" 90 "$python" examples/digits.py "$work/digits.png"
part "dispatch, beside jax" 100 "$python" -m benchmarks.dispatch --repeats 7
part "compiled gradients, beside jax" 60 "$python" -m benchmarks.steady --repeats 7

step "done"
if [ ${#failed[@]} -gt 0 ]; then
    printf 'FAILED: %s\n' "${failed[@]}"
    exit 1
fi
echo "all parts passed"
