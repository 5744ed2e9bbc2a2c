"""The page in a real browser (headless Chromium), and as text."""

import html.parser
import shutil
import sys

import pytest

import kernelmdp as km
import kmdp as cli
from kernelmdp.errors import ArgumentError
from kernelmdp.report import read
from kernelmdp.report.page import write_report
from tests.report.stored import store, store_maps

EVIL = '<script>document.title = "taken"</script>'
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two environments, one of whose names means harm; maps in one and in two coordinates."""
    place = tmp_path_factory.mktemp("study")
    for seed in range(3):
        store(place / "line" / f"p{seed}", seed=seed, bound=30.0)
        words = {"a rather long setting": "with a long value that is nowhere to be broken"}
        store(place / "line" / f"g{seed}", agent="greedy", seed=seed, size=2.0, words=words)
        store(place / "evil" / f"p{seed}", env=EVIL, agent=f"a{EVIL}", seed=seed, known=False)
    store(place / "line" / "p10", seed=10, episodes=3)
    store_maps(place / "line" / "p0", dimension=2)
    store_maps(place / "evil" / "p0")
    (place / "report.html").write_text("an older page")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["kmdp", "report", str(place), "--title", f"All of {EVIL}"])
        cli.main()
    return place


@pytest.fixture(scope="module")
def text(folder):
    return (folder / "report.html").read_text()


def test_files_beside_the_page(folder):
    figures = {path.name for path in (folder / "figures").iterdir()}
    assert {f"line-regret.{form}" for form in ("pdf", "svg", "png")} <= figures
    assert len(figures) == (7 + 5 + 2) * 3  # with maps of one agent in each
    tables = {path.name for path in (folder / "tables").iterdir()}
    forms = ("txt", "csv", "md", "tex")
    assert tables == {f"{name}.{form}" for name in ("statistics", "comparisons") for form in forms}
    assert not list(folder.rglob("*.part"))


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def test_nothing_comes_from_elsewhere(text):
    sources = [
        words[name] for _, words in Tags(text).found for name in ("src", "href") if name in words
    ]
    assert len(sources) > 14
    assert all(source.startswith(("data:", "#")) for source in sources)
    assert "http://" not in text
    assert "https://" not in text


def test_maps_without_names_count_coordinates_from_0(text):
    assert "Across: state[0], " in text
    assert "Upwards: state[1], " in text


def test_names_are_escaped(text):
    assert EVIL not in text
    assert "&lt;script&gt;document.title" in text


def test_what_the_page_says(text):
    assert "10 trials, 3 agents, 2 environments, 57 episodes" in text
    assert "line: 1 of 7 trials are not finished: line/p10 (3 of 6)" in text
    assert "Theorem 1, improved, for all T" in text
    assert "not covered: made up" in text
    assert "kernelmdp 0.0.9" in text
    assert "kmdp run line --agent greedy --set" in text
    assert "<h1>All of &lt;script&gt;" in text
    assert "kmdp report /" in text
    assert "an older page" not in text


def test_captions_fit_what_is_known(text):
    evil, line = text.split('<h2 id="env-')[1:]
    assert "Return against the optimum.</strong>" in line
    assert '<th scope="col" class="n">Slope</th><th scope="col" class="n">Coverage</th>' in line
    assert "Return.</strong> The return of every episode. The optimum is not known." in evil
    assert "Return against" not in evil
    for words in ('class="n">Slope</th>', 'class="n">Coverage</th>', "Slope: of log regret"):
        assert words not in evil
    assert '<button type="button">Regret</button>' in text  # one table for all trials


def test_trials_without_regret_have_no_empty_columns(tmp_path):
    store(tmp_path / "run", known=False)
    store_maps(tmp_path / "run", dimension=2, coordinates=["angle", "speed"])
    write_report(read(tmp_path), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    for title in ("Regret", "Bound", "Slope"):
        assert f">{title}</button>" not in text
    titles, cells = text.split('id="trial-table"')[1].split("</tr>", 1)
    assert titles.count("<th ") == cells.split("</tr>")[0].count("<td") == 9
    assert "Across: angle, " in text
    assert "Upwards: speed, " in text


def test_every_image_has_words(text):
    names = {"img": "alt", "canvas": "aria-label"}
    found = [words.get(names[tag]) for tag, words in Tags(text).found if tag in names]
    # In one environment regret and coverage have nothing to show. Maps are pictures too.
    assert len(found) == 7 + 5 + 2 * 2 + 2
    assert "Not drawn: cumulative regret (the optimum is not known), coverage" in text
    assert all(found)
    assert any("psrl" in words and "Cumulative regret" in words for words in found)


def test_a_page_is_a_file_of_html(tmp_path):
    store(tmp_path / "run")
    config = tmp_path / "run" / "config.toml"
    for out in (config, tmp_path, config / "x.html"):
        with pytest.raises(ArgumentError, match="out"):
            write_report(km.read(tmp_path / "run"), out)
    assert "[run]" in config.read_text()


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine (Debian: apt-get install chromium)")
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def complaints():
    return []


@pytest.fixture(scope="module")
def page(browser, folder, complaints):
    """Opened from disk, on a phone; all that the browser says or asks the network for is kept."""
    opened = browser.new_page(viewport={"width": 400, "height": 800})
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    local = ("file:", "data:")
    opened.on("request", lambda own: own.url.startswith(local) or complaints.append(own.url))
    opened.goto((folder / "report.html").as_uri())
    yield opened
    opened.close()


def test_nothing_overflows_on_a_phone(page):
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 400
    page.set_viewport_size({"width": 1280, "height": 900})
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 1280


def test_a_name_cannot_run(page):
    assert page.title() == f"All of {EVIL}"


def test_figures_are_drawn(page):
    assert page.evaluate("[...document.images].every(image => image.naturalWidth > 100)")


def test_maps_without_scripts_are_pictures(browser, folder):
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto((folder / "report.html").as_uri())
    assert opened.locator(".maps img").count() == 2
    assert all(picture.is_visible() for picture in opened.locator(".maps img").all())
    assert not any(canvas.is_visible() for canvas in opened.locator(".maps canvas").all())
    context.close()


def test_maps_with_scripts_have_a_slider(page):
    assert all(canvas.is_visible() for canvas in page.locator(".maps canvas").all())
    assert page.locator(".maps img").count() == 0


def test_sorting_by_click_and_by_key(page):
    def column(number):
        return page.evaluate(
            "n => [...document.querySelectorAll('#trial-table tbody tr')]"
            ".map(row => row.cells[n].innerText)",
            number,
        )

    seeds = page.locator("#trial-table th button", has_text="Seed")
    seeds.click()
    assert [int(seed) for seed in column(3)] == [0] * 3 + [1] * 3 + [2] * 3 + [10]
    head = page.locator("#trial-table th", has_text="Seed")
    assert head.get_attribute("aria-sort") == "ascending"
    seeds.press("Enter")
    assert column(3)[0] == "10"
    assert head.get_attribute("aria-sort") == "descending"
    regret = page.locator("#trial-table th button", has_text="Regret")
    for _ in range(2):  # what is not known comes last either way
        regret.click()
        assert column(5)[-3:] == ["–"] * 3
    assert head.get_attribute("aria-sort") is None


def test_filtering(page):
    page.fill("#filter", "GREEDY  line")
    rows = page.locator("#trial-table tbody tr")
    assert rows.count() == 10
    assert rows.locator("visible=true").count() == 3
    assert page.inner_text("#shown") == "3 of 10 trials"
    page.fill("#filter", "")
    assert page.inner_text("#shown") == "10 of 10 trials"


@pytest.mark.parametrize("which", [0, 1])
def test_slider_by_key(page, which):
    group = page.locator(".maps").nth(which)
    slider, canvas = group.locator("input"), group.locator("canvas").first
    pictures = [canvas.evaluate("c => c.toDataURL()")]
    assert group.locator("output").inner_text() == "6"
    slider.focus()
    for episode in ("2", "0"):
        page.keyboard.press("ArrowLeft")
        assert group.locator("output").inner_text() == episode
        assert slider.get_attribute("aria-valuetext") == f"after {episode} episodes"
        assert f"planned value after {episode} episodes: from" in canvas.get_attribute("aria-label")
        pictures.append(canvas.evaluate("c => c.toDataURL()"))
    assert len(set(pictures)) == 3


def test_it_prints(page):
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator("#filter").is_visible()
    assert page.pdf().startswith(b"%PDF")
    page.emulate_media(media="screen")


def test_the_browser_has_nothing_to_complain_about(page, complaints):
    assert complaints == []
