"""Facts that stand in several files of the package agree: versions of Python and jaxlib, links, the version."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

import tapeless

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
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
