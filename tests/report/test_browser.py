"""The page in headless Chromium: no error on its console, data shown as text, and quick at 10,000 queries."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from metrics_core import compare, evaluate, write_report

from .conftest import HOSTILE

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

QUERIES = 10_000
READY = "document.documentElement.dataset.ready === 'yes' && charts.every(chart => chart.points.length > 0)"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        as_root = hasattr(os, "geteuid") and os.geteuid() == 0  # whom Chromium's sandbox refuses
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"] if as_root else [])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Opens a report; afterwards nothing may have been said on the console or asked of a network."""
    said, asked, contexts = [], [], []

    def open_page(path, **options):
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}} | options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_function(READY)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
    assert all(url.startswith(("file:", "data:")) for url in asked)


@pytest.fixture(scope="module")
def report(everything, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, **everything)
    return path


@pytest.fixture
def page(opened, report):
    return opened(report)


def cells(page, column):
    return page.eval_on_selector_all(
        f"#scores tbody tr > *:nth-child({column})", "cells => cells.map(each => each.textContent)"
    )


def test_hostile_text_is_text_wherever_it_shows(page, collection):
    assert page.title() == f"Report {HOSTILE}"
    page.fill("#filter", "</script>")
    assert cells(page, 1) == [HOSTILE]
    assert cells(page, 2) == [f"the text of {HOSTILE}"]
    page.fill("#filter", "")
    page.evaluate("for (const query in data.details) state.open.add(Number(query)); drawBody()")
    assert any(HOSTILE in text for text in page.locator(".detail li").all_text_contents())
    assert any(f"what {HOSTILE} says" in text for text in page.locator(".detail p").all_text_contents())
    assert f"dense {HOSTILE}" in page.locator("#scores thead th").all_text_contents()
    page.focus("#differences .canvas")
    page.keyboard.press("End")
    assert f"dense {HOSTILE}" in page.text_content("#tip")
    page.dispatch_event("figure svg path[role=graphics-symbol][aria-label*='</script>'] >> nth=0", "pointermove")
    assert page.text_content("#tip").startswith(f"dense {HOSTILE}")
    assert page.evaluate("window.pwned === undefined && document.images.length === 0 && document.scripts.length === 2")


def test_a_script_from_elsewhere_does_not_run(browser, report):
    page = browser.new_page()
    page.goto(report.as_uri())
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.pwned = 1'}))")
    assert page.evaluate("window.pwned === undefined")
    page.close()


def test_orders(page, collection):
    first, second = (scores["nDCG@10"] for scores in collection.scores.values())
    ids = list(collection.queries)

    def expected(values):
        return [ids[query] for query in sorted(range(120), key=lambda query: values[query])[:50]]

    assert cells(page, 1) == expected(np.round((np.round(first, 5) + np.round(second, 5)) / 2, 9))
    page.click("text=Largest regressions")
    assert cells(page, 1) == expected(np.round(second, 5) - np.round(first, 5))
    assert page.get_attribute("text=Largest regressions", "aria-pressed") == "true"
    page.click("text=Largest gains")
    assert cells(page, 1)[0] == expected(first - second)[0]
    page.click("#scores thead button >> text=query")
    assert cells(page, 1)[1:4] == ["q0", "q1", "q2"]  # q2 before q10
    assert page.get_attribute("#scores thead th >> nth=0", "aria-sort") == "ascending"
    page.click("#scores thead button >> text=query")
    assert page.get_attribute("#scores thead th >> nth=0", "aria-sort") == "descending"
    assert cells(page, 1)[0] == "q118"
    page.select_option("#metric", label="RR")
    assert cells(page, 3)[0] == f"{collection.scores['bm25']['RR'][118]:.4f}"


def test_filter_and_pages(page):
    assert page.inner_text("#found") == "120 of 120 queries"
    assert page.inner_text("#page") == "page 1 of 3"
    page.click("#next")
    page.click("#next")
    assert (page.inner_text("#page"), len(cells(page, 1))) == ("page 3 of 3", 20)
    assert page.is_disabled("#next")
    page.fill("#filter", "TEXT OF Q11")
    assert page.inner_text("#found") == "10 of 120 queries"
    assert sorted(cells(page, 1)) == sorted(["q11", *(f"q{i}" for i in range(110, 119))])
    page.fill("#filter", "nothing like it")
    assert (page.inner_text("#found"), cells(page, 1)) == ("0 of 120 queries", [])


def test_documents_of_a_query(page, collection):
    button = page.locator("#scores tbody th button").first
    query = button.inner_text()
    assert button.get_attribute("aria-expanded") == "false"
    button.click()
    assert page.locator("#scores tbody th button").first.get_attribute("aria-expanded") == "true"
    shown = page.inner_text(".detail")
    for document in collection.qrels[query]:
        assert document[:20] in shown
    assert page.locator(".detail .grade.relevant").count() >= 2
    page.locator("#scores tbody th button").first.click()
    assert page.locator(".detail").count() == 0


def test_keyboard(page):
    page.focus("#scores thead button >> nth=2")
    page.keyboard.press("Enter")
    assert page.get_attribute("#scores thead th >> nth=2", "aria-sort") == "ascending"
    assert page.evaluate("document.activeElement.closest('th').cellIndex") == 2
    page.focus("#scores tbody th button >> nth=0")
    page.keyboard.press("Space")
    assert page.locator(".detail").count() == 1
    for chart in ("differences", "scatter"):
        page.focus(f"#{chart} .canvas")
        page.keyboard.press("ArrowRight")
        first = page.text_content("#spoken")
        page.keyboard.press("ArrowRight")
        assert page.text_content("#spoken") != first
        page.keyboard.press("Home")
        assert page.text_content("#spoken") == first
        assert page.is_visible("#tip")
        page.keyboard.press("Enter")
        assert page.input_value("#filter") == first.split("\n")[0]
        assert cells(page, 1)[0] == first.split("\n")[0]
        assert page.is_hidden("#tip")
        page.fill("#filter", "")


def test_hovering_over_a_chart_names_the_query(page):
    page.hover("#differences .canvas", position={"x": 46, "y": 80})
    worst = page.evaluate("data.ids[state.compared[0]]")
    assert page.text_content("#tip").startswith(worst)
    page.mouse.move(5, 5)
    assert page.is_hidden("#tip")


@pytest.mark.parametrize("width", [360, 1200])
def test_names_of_runs_are_whole_beside_their_marks_and_leave_room_for_scores(opened, tmp_path, width):
    names = ["bm25", "hybrid.run", "a-retriever-with-a-name-" * 6]
    runs = {name: {query: (query + place) % 7 / 7 for query in range(20)} for place, name in enumerate(names)}
    write_report(tmp_path / "names.html", runs, comparison=compare(runs, n_resamples=10))
    page = opened(tmp_path / "names.html", viewport={"width": width, "height": 740})
    boxes = """selector => Array.from(document.querySelectorAll(selector), each => {
        const box = each.getBoundingClientRect();
        return [each.textContent, box.left, box.right];
    })"""
    for chart in ("svg:nth-of-type(1)", "svg:nth-of-type(2)"):
        ((_, left, _),) = page.evaluate(boxes, f"figure {chart}")
        marks = page.evaluate(boxes, f"figure {chart} :is(.mark-rule, .mark-rect)[role=graphics-object] > *")
        texts = [each for each in page.evaluate(boxes, f"figure {chart} text") if each[0][0].isalpha()]
        assert [text[:10] for text, _, _ in texts] == [name[:10] for name in names]
        for _, begins, ends in texts:
            assert left <= begins < ends <= min(begin for _, begin, _ in marks) + 1
    for table in ("#means", "#queries"):
        _, left, _ = page.evaluate(boxes, f"{table} thead th.number")[0]
        assert left < width
        if width > 1000:  # nothing has to be scrolled to
            assert (
                page.evaluate(f"(box => box.scrollWidth - box.clientWidth)(document.querySelector('{table} .scroll'))")
                == 0
            )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phones_and_dark_mode(opened, report, scheme):
    page = opened(report, viewport={"width": 360, "height": 740}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    contrast = """selector => {
        const light = colour => {
            const [r, g, b] = colour.match(/[\\d.]+/g).map(each => each / 255)
                .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const found = document.querySelector(selector);
        const [x, y] = [getComputedStyle(found).color, getComputedStyle(document.body).backgroundColor].map(light);
        return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
    }"""
    for selector in ("h1", ".note", "nav a", "figure svg", "#scores td"):
        assert page.evaluate(contrast, selector) >= 4.5  # WCAG's AA
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] < 128")
    assert dark == (scheme == "dark")


def test_one_run_without_anything_else(opened, collection, tmp_path):
    write_report(tmp_path / "one.html", {"bm25": collection.scores["bm25"]})
    page = opened(tmp_path / "one.html")
    assert page.locator("canvas").count() == 0
    assert len(cells(page, 1)) == 50
    assert page.locator("#scores thead th").count() == 2


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    rng = np.random.default_rng(0)
    ids = [f"q{i}" for i in range(QUERIES)]
    qrels = {query: {f"d{i % 500}": 1, f"d{i % 501}": 2} for i, query in enumerate(ids)}
    runs = {
        name: {
            query: [f"d{i}" for i in found]
            for query, found in zip(
                ids, rng.permuted(np.tile(np.arange(502), (QUERIES, 1)), axis=1)[:, :10].tolist(), strict=True
            )
        }
        for name in ("bm25", "dense", "hybrid")
    }
    for name, share in zip(runs, (3, 4, 5), strict=True):
        for i, query in enumerate(ids):
            if i % 7 < share:
                first = next(iter(qrels[query]))
                runs[name][query] = [each for each in runs[name][query] if each != first]
                runs[name][query].insert(i % 5, first)
    scores = {name: evaluate(qrels, run, ["nDCG@10", "AP", "RR"]) for name, run in runs.items()}
    path = tmp_path_factory.mktemp("large") / "report.html"
    write_report(
        path,
        scores,
        comparison=compare(scores, n_resamples=200),
        qrels=qrels,
        rankings=runs,
        queries={
            query: f"{query} {' '.join(rng.choice(['how', 'why', 'where', 'what', 'is', 'a'], 10))}" for query in ids
        },
        documents={f"d{i}": f"document {i} " * 40 for i in range(502)},
    )
    return path


def test_ten_thousand_queries(large, opened):
    """In CPU time of all threads of the page's process, which is the same however busy the machine is."""
    assert large.stat().st_size < 5e6
    page = opened(large)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def seconds():
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "ProcessTime")

    assert 0 < seconds() < 2

    def milliseconds(action):
        """From the action until the next frame is drawn."""
        start = seconds()
        page.evaluate(
            f"""new Promise(done => {{
                {action};
                requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
            }})"""
        )
        return 1000 * (seconds() - start)

    header = "document.querySelectorAll('#scores thead button')[{}].click()"
    for column in range(page.locator("#scores thead th").count()):
        for _ in ("ascending", "descending"):
            assert milliseconds(header.format(column)) < 200
    typed = "const box = document.getElementById('filter'); box.value = '{}'; box.dispatchEvent(new Event('input'))"
    for text in ("q1", "why", "nothing", ""):
        assert milliseconds(typed.format(text)) < 200
    metric = "const box = document.getElementById('metric'); box.value = 1; box.dispatchEvent(new Event('change'))"
    assert milliseconds(metric) < 500
