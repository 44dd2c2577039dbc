"""docs/explain.svg, the picture of `tl.explain` in the README, is what docs/make_picture.py draws."""

from xml.etree import ElementTree

from tests.pages import DOCS, maker

SVG = "{http://www.w3.org/2000/svg}"


def test_picture_is_fresh():
    assert (DOCS / "explain.svg").read_text(encoding="utf-8") == maker("picture").picture(), (
        "run python docs/make_picture.py"
    )


def test_three_columns_and_one_row_lit():
    root = ElementTree.parse(DOCS / "explain.svg").getroot()
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert {"PRIMAL", "LINEAR", "TRANSPOSED"} <= set(words) and "c:f32[3] = a @ b" in words
    assert len([box for box in root.iter(f"{SVG}rect") if box.get("class") == "self"]) == 1
    assert not any("http" in (value or "") for element in root.iter() for value in element.attrib.values())
