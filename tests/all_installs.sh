#!/usr/bin/env bash
# Install what is built, and run tests/smoke.py with warnings as errors:
#   tests/all_installs.sh DIST                       wheel and sdist, every Python, oldest and newest dependencies
#   tests/all_installs.sh DIST "3.11 sdist oldest"   these rows only
# DIST is a folder that `python -m build` filled. Prints a table; fails if a row does.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/tests/find_python.sh"
dist=$(cd "$1" && pwd)
shift
rows=("$@")
if [ ${#rows[@]} -eq 0 ]; then
    for version in 3.11 3.12 3.13; do
        for kind in wheel sdist; do rows+=("$version $kind oldest" "$version $kind newest"); done
    done
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1
failed=0
table=()

# What pyproject.toml names as lower bounds; NumPy has wheels for Python 3.13 from 2.1 on.
oldest() {
    local numpy=2.0.0
    [ "$1" != 3.13 ] || numpy=2.1.0
    echo "numpy==$numpy jaxlib==0.10.2 ml_dtypes==0.5.0"
}

install_and_run() {
    local version=$1 kind=$2 age=$3 python file bounds=()
    python=$(find_python "$version") || { echo "no working python$version found"; return 1; }
    file=$(ls "$dist"/tapeless-*."$([ "$kind" = wheel ] && echo whl || echo tar.gz)")
    [ "$age" = newest ] || read -ra bounds <<<"$(oldest "$version")"
    rm -rf "$work/venv"
    "$python" -m venv "$work/venv"
    "$work/venv/bin/python" -m pip install -q --only-binary numpy,scipy,jaxlib,ml_dtypes "$file" "${bounds[@]}" &&
        (cd "$work" && "venv/bin/python" -W error "$root/tests/smoke.py")
}

for row in "${rows[@]}"; do
    printf '\n\033[1m== %s\033[0m\n' "$row"
    read -r version kind age <<<"$row"
    if result=$(install_and_run "$version" "$kind" "$age"); then
        echo "$result"
        table+=("$row: ${result##*$'\n'}")
    else
        failed=1
        table+=("$row: FAILED")
    fi
done
printf '\n'
printf '%s\n' "${table[@]}"
exit $failed
