"""Facts that stand in several files of the package agree: versions of Python and jaxlib, links, the version."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

import tapeless

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
KINDS = [kind["directory"] for kind in PYPROJECT["tool"]["towncrier"]["type"]]
PYTHONS = [found[1] for text in PROJECT["classifiers"] if (found := re.search(r"Python :: (3\.\d+)$", text))]


def test_the_version_is_said_once_in_each_place():
    assert PROJECT["version"] == tapeless.__version__
    assert f"\nversion: {tapeless.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_pythons_and_jaxlibs_that_are_promised_are_tried():
    installs = (ROOT / "tests/all_installs.sh").read_text()
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    assert f"for version in {' '.join(PYTHONS)}; do" in installs
    dependencies = " ".join(PROJECT["dependencies"])
    oldest = re.search(r"jaxlib>=([\d.]+)", dependencies)[1]
    for script in (installs, (ROOT / "tests/all_jaxlibs.sh").read_text()):
        assert f"jaxlib=={oldest}" in script


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_links_of_the_description_are_absolute():
    pytest.importorskip("setuptools")
    text = runpy.run_path(str(ROOT / "setup.py"))["description"]()
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert f"{PROJECT['urls']['Source']}/blob/main/docs/tour.md" in links
    assert f"{PROJECT['urls']['Source']}/raw/main/docs/explain.svg" in links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def fault(name: str, text: str) -> str | None:
    """What is wrong with a fragment of the changelog."""
    if not re.fullmatch(rf"[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(KINDS)})\.md", name):
        return f"the name is not TOPIC.KIND.md, with a kind of {KINDS}"
    return "it is empty, or begins with a bullet" if not text.strip() or text.lstrip().startswith(("-", "*")) else None


def test_fragments_of_the_changelog_have_a_known_kind_and_a_text():
    texts = {path.name: path.read_text("utf-8") for path in (ROOT / "changelog.d").iterdir()}
    shown = texts.pop("README.md")
    texts.pop("template.jinja")
    assert re.findall(r"^\| `TOPIC\.(\w+)\.md`", shown, re.MULTILINE) == KINDS
    assert {name: found for name, text in texts.items() if (found := fault(name, text))} == {}


def test_a_fragment_without_kind_or_text_is_found():
    assert fault("scan-lengths.added.md", "`lax.scan` takes arrays.\n") is None
    wrong = [
        ("scan.mended.md", "x"),
        ("scan.md", "x"),
        ("Scan.added.md", "x"),
        ("a.fixed.md", " \n"),
        ("a.fixed.md", "- x"),
    ]
    assert all(fault(name, text) for name, text in wrong)


def test_a_release_is_inserted_where_the_changelog_says():
    assert PYPROJECT["tool"]["towncrier"]["start_string"] in (ROOT / "CHANGELOG.md").read_text()
