# Sourced by .ci/run and tests/all_jaxlibs.sh: `find_python 3.11` prints a python of that version that works, if any.
# Looks on PATH, then among pyenv's versions (whose shims exist on PATH even for versions that are not selected).
find_python() {
    local version=$1 candidate
    for candidate in $(type -aP "python$version" || true) "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python; do
        "$candidate" -c '
import ensurepip, sys, venv
sys.exit(1) if "%d.%d" % sys.version_info[:2] != sys.argv[1] else print(sys.executable)
' "$version" 2>/dev/null && return 0
    done
    return 1
}
