#!/usr/bin/env bash
# The test-suite on every jaxlib we support: tests/all_jaxlibs.sh [arguments of pytest]
# Environments are made anew in a temporary folder; set ALL_JAXLIBS_VENVS to a folder to keep and reuse them.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/tests/find_python.sh"
stacks=("3.11 jaxlib==0.10.2" "3.12 jaxlib==0.11.2" "3.13 jaxlib")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venvs=${ALL_JAXLIBS_VENVS:-$work}
export PIP_DISABLE_PIP_VERSION_CHECK=1
failed=()

for stack in "${stacks[@]}"; do
    read -r version jaxlib <<<"$stack"
    printf '\n\033[1m== Python %s, %s\033[0m\n' "$version" "$jaxlib"
    if ! python=$(find_python "$version"); then
        echo "no working python$version found"
        failed+=("$stack")
        continue
    fi
    venv="$venvs/py$version${jaxlib#jaxlib}"
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    rm -rf "$work/source"
    mkdir "$work/source"
    (cd "$root" && tar --exclude=.git --exclude=build --exclude='*.egg-info' -cf - .) | tar -xf - -C "$work/source"
    (
        cd "$work/source"
        "$venv/bin/python" -m pip install -q --upgrade --only-binary jaxlib,numpy,scipy '.[test]' "$jaxlib"
        rm -rf build ./*.egg-info
        "$venv/bin/python" -c 'import sys, jaxlib, numpy; print(sys.version.split()[0], jaxlib.__version__, numpy.__version__)'
        "$venv/bin/python" -m pytest -q -n 2 "$@"
    ) || failed+=("$stack")
done

if [ ${#failed[@]} -gt 0 ]; then
    printf '\nfailed: %s\n' "${failed[@]}"
    exit 1
fi
printf '\nall stacks good\n'
