"""The page of tl.explain: what it holds, and in a real browser what lights up."""

import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.api.explanation.test_explain import EVERY, every, mlp, running, steps
from tests.messages import place

THREE = np.ones(3, np.float32)
VOID = {"meta", "br", "wbr"}
BROWSERS = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome", "google-chrome-stable")


class Document(HTMLParser):
    """Reads a document strictly: every element is closed where it must be."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names))
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def having(self, attribute: str) -> dict[str, dict[str, str]]:
        return {attrs[attribute]: attrs for _, attrs in self.elements if attribute in attrs}


def saved(tmp_path: Path, f: Any, *args: Any) -> Path:
    path = tmp_path / "x.html"
    tl.explain(f, *args).save(path)
    return path


# ---- what it holds --------------------------------------------------------------------------------------------


@every
def test_page_is_well_formed_and_every_row_is_there(name: str, tmp_path: Path):
    f, *args = EVERY[name]
    explained = tl.explain(f, *args)
    explained.save(str(tmp_path / "x.html"))
    document = Document((tmp_path / "x.html").read_text(encoding="utf-8"))
    keyed = document.having("data-key")
    phases = (explained.primal, explained.linear, explained.transposed)
    assert [key for key in keyed if key[0] in "plt"] == [row.key for phase in phases for row in phase.walk()]
    assert len([key for key in keyed if key[0] == "m"]) == len(explained.residuals)
    for key, attrs in keyed.items():
        linked = attrs["data-to"].split()
        assert set(linked) <= keyed.keys() - {key}
        back = [other for other in linked if key not in keyed[other]["data-to"].split() and other[0] != "s"]
        assert back == [] or key[0] == "b"  # of moments, which are many


def test_page_needs_nothing_else(tmp_path: Path):
    text = saved(tmp_path, mlp, EVERY["mlp"][1], THREE).read_text(encoding="utf-8")
    document = Document(text)
    assert not re.search(r"https?:|url\(|@import|//cdn", text)
    assert not any({"src", "href", "srcset"} & attrs.keys() for _, attrs in document.elements)
    assert [tag for tag, _ in document.elements if tag in ("link", "img", "iframe", "object")] == []


def test_styles_are_nested_under_one_class():
    style = tl.explain(running, THREE)._repr_html_().split("<style>")[1].split("</style>")[0]
    depth, outside = 0, ""
    for c in style:
        depth += (c == "{") - (c == "}")
        outside += c if depth == 0 and c != "}" else ""
    assert outside.split() == [".tapeless-explanation"]


def hostile(params):
    x = tl.ad_checkpoint.checkpoint_name(params["<b>&'\""] * 2, "</script><i>")
    return tnp.sin(x)  # <script>alert("&amp;")</script>


def test_what_the_user_wrote_is_escaped(tmp_path: Path):
    hostile.__name__ = "<img src=x onerror=alert(1)>"
    text = saved(tmp_path, hostile, {"<b>&'\"": np.float32(1)}).read_text(encoding="utf-8")
    document = Document(text)
    tags = [tag for tag, _ in document.elements]
    assert tags.count("script") == 1
    assert not {"img"} & set(tags)
    shown = "".join(document.text)
    assert '# <script>alert("&amp;")</script>' in shown
    assert "<img src=x onerror=alert(1)>" in shown
    assert "params['<b>&\\'\"']" in shown
    assert "</script><i>" in shown


def test_source_lines_are_shown_and_the_executed_ones_marked():
    document = Document(tl.explain(steps, THREE, np.float32(1))._repr_html_())
    notes = [attrs["data-note"] for key, attrs in document.having("data-key").items() if key[0] == "s"]
    assert [note.split(":")[0] for note in notes] == [
        f"line {place(steps, text).split(' ')[0].split(':')[1]}"
        for text in ("s = tnp.sin(c)", "return s * y, c", "c, ys = lax.scan", "return c + tnp.sum")
    ]
    assert "def steps(x, start):" in "".join(document.text)


def deep(x):
    for _ in range(400):
        x = tnp.tanh(x)
    return x


def test_moments_of_the_curve_are_few_and_say_what_is_live():
    explained = tl.explain(deep, np.ones(1000, np.float32))
    document = Document(explained._repr_html_())
    moments = {key: attrs for key, attrs in document.having("data-key").items() if key[0] == "b"}
    assert 100 < len(moments) <= 162
    peaks = [attrs for attrs in moments.values() if "data-peak" in attrs]
    assert [attrs["tabindex"] for attrs in moments.values()].count("0") == len(peaks) == 1
    title, values, *_ = peaks[0]["data-note"].splitlines()
    memory = tl.memory(deep, np.ones(1000, np.float32))
    assert title.startswith("1.6 MB live, backward at ") and title.endswith(", the most")
    assert memory.peak == 1_600_000 == memory.live.nbytes[memory.live.peak]
    assert values == f"1.6 MB  399 × float32[1000] mul  {place(deep, 'tnp.tanh')}"
    assert len(peaks[0]["data-to"].split()) == 1 + 32 + 1  # the equation, of the values some, and the line


# ---- in a browser ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'tapeless[browser]'")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=found)
        yield opened
        opened.close()


class Page:
    """A page in the browser, which must not complain."""

    def __init__(self, browser: Any, path: Path, width: int = 1280, scheme: str = "light") -> None:
        self.complaints: list[str] = []
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.complaints.extend([request.url] * (request.url != self.page.url)))
        self.page.goto(path.as_uri())
        self.complaints.clear()  # the request for the page itself

    def row(self, key: str) -> Any:
        return self.page.locator(f'[data-key="{key}"]')

    def lit(self) -> list[str]:
        return self.page.eval_on_selector_all(".lit", "found => found.map(x => x.dataset.key)")

    def chosen(self) -> list[str]:
        return self.page.eval_on_selector_all(".self", "found => found.map(x => x.dataset.key)")

    def focused(self) -> str | None:
        return self.page.evaluate("document.activeElement.dataset.key ?? null")

    def note(self) -> str:
        return self.page.locator("[role=status]").inner_text()

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def leave(self) -> None:
        self.page.mouse.move(1, 1)


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Page]:
    opened = Page(browser, saved(tmp_path, running, THREE))
    yield opened
    assert opened.complaints == []
    opened.page.close()


def test_hovering_lights_what_belongs_together(page: Page):
    assert page.lit() == []
    page.row("l2").hover()
    assert page.chosen() == ["l2"]
    assert set(page.lit()) == {"p3", "t2", "m2", "s2"}
    assert page.note().startswith("l2: made from p3, transposed into t2, reads m2; ")
    assert "return tnp.sin(x) * x" in page.note()
    page.row("t3").hover()
    assert set(page.lit()) == {"l1", "p1", "p2", "m1", "s2"}
    page.row("m3").hover()
    assert set(page.lit()) == {"p1", "l3", "t1", "s2"}
    page.leave()
    assert page.lit() == page.chosen() == []


def test_hovering_a_line_lights_its_equations(page: Page):
    page.row("s2").hover()
    assert set(page.lit()) == {"p1", "p2", "p3", "l1", "l2", "l3", "l4", "t1", "t2", "t3", "t4", "m1", "m3"}


def test_what_is_lit_looks_different(page: Page):
    colour = "row => getComputedStyle(row).backgroundColor"
    before = page.row("p3").evaluate(colour)
    page.row("l2").hover()
    assert len({before, page.row("p3").evaluate(colour), page.row("l2").evaluate(colour)}) == 3


def test_a_click_keeps_it_lit(page: Page):
    page.row("l2").click()
    page.leave()
    page.row("p1").hover()
    assert page.chosen() == ["l2"]
    assert page.row("l2").get_attribute("aria-pressed") == "true"
    page.row("p1").click()
    assert page.chosen() == ["p1"]
    page.row("p1").click()
    page.leave()
    assert page.chosen() == []
    assert page.page.locator('[aria-pressed="true"]').count() == 0


def test_keyboard(page: Page):
    page.press("Tab")
    assert page.focused() == "s2"
    assert "p1" in page.lit()
    page.row("l1").focus()
    page.press("ArrowDown")
    assert (page.focused(), page.chosen()) == ("l2", ["l2"])
    page.press("ArrowRight")
    assert page.focused() == "t2"
    page.press("ArrowLeft")
    page.press("ArrowLeft")
    assert page.focused() == "p3"
    page.press("Enter")
    page.press("ArrowUp")
    assert (page.focused(), page.chosen()) == ("p2", ["p3"])
    page.press("Escape")
    assert page.chosen() == ["p2"]


def test_the_curve_by_pointer_and_keyboard(page: Page):
    page.row("b3").hover()
    assert page.chosen() == ["b3"] and set(page.lit()) == {"p2", "m1", "m3", "s2"}
    assert page.note().startswith("24 B live, forward at ") and page.note().count("float32[3]") == 2
    page.leave()
    page.page.locator("[data-peak]").focus()
    (peak,) = page.chosen()
    assert page.note().splitlines()[0].endswith(", the most")
    page.press("ArrowRight")
    assert page.focused() == page.chosen()[0] == f"b{int(peak[1:]) + 1}"
    page.press("ArrowLeft")
    page.press("Enter")
    page.press("ArrowUp")
    assert page.chosen() == [peak] and page.focused() == f"b{int(peak[1:]) - 1}"


def test_programs_inside_fold(browser: Any, tmp_path: Path):
    page = Page(browser, saved(tmp_path, steps, THREE, np.float32(1)))
    inside = page.page.locator(".phase details [data-key]").first
    assert inside.is_visible()
    page.page.locator(".phase summary").first.click()
    assert not inside.is_visible()
    assert page.complaints == []
    page.page.close()


@pytest.mark.parametrize("width", [800, 1100, 1600, 400])
def test_nothing_overflows(browser: Any, tmp_path: Path, width: int):
    wide = {"w": [np.ones((640, 3), np.float32), np.ones((2, 640), np.float32)]}
    page = Page(browser, saved(tmp_path, mlp, wide, THREE), width)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    cut = "found => found.filter(x => x.scrollWidth > x.clientWidth + 1).map(x => x.outerHTML)"
    assert page.page.eval_on_selector_all(".row, .row > *:not(span:empty)", cut) == []
    page.page.close()


# Of every text the contrast to what is behind it, both drawn on a canvas, which mixes colours as the page does.
CONTRAST = """() => {
  const context = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const paint = (colour) => { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); };
  const luminance = () => [...context.getImageData(0, 0, 1, 1).data].slice(0, 3)
    .map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const worst = {};
  for (const x of document.querySelectorAll(".tapeless-explanation *")) {
    if (![...x.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || x.matches("style, script")) continue;
    const behind = [];
    for (let y = x; y; y = y.parentElement) behind.unshift(getComputedStyle(y).backgroundColor);
    paint("white");
    behind.forEach(paint);
    const ground = luminance();
    paint(getComputedStyle(x).color);
    const [a, b] = [ground, luminance()].sort((a, b) => b - a);
    const name = x.tagName + "." + x.className;
    worst[name] = Math.min(worst[name] ?? 21, (a + 0.05) / (b + 0.05));
  }
  return worst;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(browser: Any, tmp_path: Path, scheme: str):
    """WCAG 2.2, level AA: 4.5 for text of this size; also where rows are lit."""
    page = Page(browser, saved(tmp_path, steps, THREE, np.float32(1)), scheme=scheme)
    ground = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(253, 253, 251)", "dark": "rgb(21, 23, 27)"}[scheme]
    for hovered in ("p4", "s3", "m1"):
        page.row(hovered).hover()
        assert {name: ratio for name, ratio in page.page.evaluate(CONTRAST).items() if ratio < 4.5} == {}
    page.page.close()


NOTEBOOK = """<!DOCTYPE html><html><head><title>n</title><style>code {{ color: rgb(1, 2, 3) }}</style></head>
<body><h3 id="mine">mine</h3><button id="button" class="row">b</button><ol><li id="li">x</li></ol>
<div class="output">{first}</div><div class="output">{second}</div></body></html>"""


def test_two_on_a_page_that_keeps_its_styles(browser: Any, tmp_path: Path):
    path = tmp_path / "notebook.html"
    plain = NOTEBOOK.format(first="", second="")
    path.write_text(plain, encoding="utf-8")
    looks = "ids => ids.map(id => JSON.stringify(Object.fromEntries([...getComputedStyle(document.getElementById(id))]"
    looks += ".map(name => [name, getComputedStyle(document.getElementById(id))[name]]))))"
    ids = ["mine", "button", "li"]
    page = Page(browser, path)
    before = page.page.evaluate(looks, ids)
    fragment = tl.explain(running, THREE)._repr_html_()
    path.write_text(NOTEBOOK.format(first=fragment, second=fragment), encoding="utf-8")
    page.page.reload()
    assert page.page.evaluate(looks, ids) == before
    second = page.page.locator(".tapeless-explanation").nth(1)
    second.locator('[data-key="l2"]').hover()
    assert second.locator(".lit").count() == 4
    assert page.page.locator(".lit").count() == 4
    page.page.close()
