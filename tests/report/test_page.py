"""The page in a real Chromium, opened from disk."""

import dataclasses
import json
import re

import numpy as np
import pytest

from unpooled.experiments.verdict import Comparison, Verdict
from unpooled.report import write_report
from unpooled.runs.run import Status

CHART, THEME = "#curves .chart", "#theme"


def number(text):
    return float(text.replace("\u2212", "-").replace("\u202f", "").split("\n")[0])


def means(groups, metric, round):
    at = {name: np.flatnonzero(runs[0].history["round"] == round)[0] for name, runs in groups.items()}
    return {name: [run.history[metric][at[name]] for run in runs] for name, runs in groups.items()}


def keys(page, css, *pressed):
    page.one(css).send_keys(*pressed)


@pytest.fixture
def Keys():
    return pytest.importorskip("selenium.webdriver.common.keys").Keys


def focused(page, css):
    return page.script("return document.activeElement.matches(arguments[0])", css)


def lines(page):
    return page.script(
        "return [...document.querySelectorAll('#curves .chart .line')].map(line => line.dataset.method)"
    )


def test_opens_from_disk_without_errors_or_requests(page, report):
    page.open(report)
    assert page.errors() == []
    assert page.script("return performance.getEntriesByType('resource').length") == 0
    sent = [json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in sent if m["method"] == "Network.requestWillBeSent"]
    assert urls == [report.resolve().as_uri()]
    assert page.text("h1") == "Two methods"
    assert lines(page) == ["Fast-FedDA", "FedAvg"]


def test_the_policy_stops_requests_and_foreign_scripts(page, report):
    page.open(report)
    blocked = page.driver.execute_async_script("""
        const done = arguments[arguments.length - 1], seen = [];
        addEventListener("securitypolicyviolation", (event) => {
            seen.push(event.effectiveDirective);
            if (seen.length === 3) done(seen.sort());
        });
        fetch("http://127.0.0.1:9/").catch(() => {});
        new Image().src = "http://127.0.0.1:9/x.png";
        const script = document.createElement("script");
        script.textContent = "window.hacked = 1";
        document.body.append(script);
    """)
    assert blocked == ["connect-src", "img-src", "script-src-elem"]
    assert page.script("return window.hacked") is None


@pytest.mark.parametrize("share", [0.15, 0.5, 0.93])
def test_hovering_shows_the_values_of_the_history(page, report, groups, share):
    page.open(report).hover(CHART, share)
    heading, rows = page.readout()
    round = int(heading.removeprefix("Round "))
    assert abs(round - 40 * share) <= 4
    for name, values in means(groups, "l2", round).items():
        shown, span = rows[name]
        assert number(shown) == pytest.approx(np.mean(values), rel=1e-3)
        assert [number(v) for v in span.split(" – ")] == pytest.approx([min(values), max(values)], rel=1e-3)
    assert page.script("return document.querySelectorAll('#curves .cross circle').length") == 2


def test_at_rest_the_legend_shows_the_end(page, report, groups):
    heading, rows = page.open(report).readout()
    assert heading == "at the end"
    for name, values in means(groups, "l2", 40).items():
        assert number(rows[name][0]) == pytest.approx(np.mean(values), rel=1e-3)


def test_crosshair_and_line_agree(page, report, groups):
    """The dot of the crosshair lies where the axis' own ticks put the value."""
    page.open(report)
    page.press("linear")
    page.hover(CHART, 0.3)
    _, rows = page.readout()
    ticks = page.script("""return [...document.querySelectorAll("#curves .ticks.y text")].map(
        t => [t.textContent, +t.getAttribute("y")])""")
    (a, ya), (b, yb) = [(number(text), y) for text, y in (ticks[0], ticks[-1])]
    dots = page.script(
        "return [...document.querySelectorAll('.cross circle')].map(c => +c.getAttribute('cy'))"
    )
    for dot, (value, _) in zip(dots, rows.values(), strict=True):
        assert a + (dot - ya) * (b - a) / (yb - ya) == pytest.approx(number(value), rel=1e-2)


def test_toggling_hides_a_line_and_its_estimate(page, report, Keys):
    page.open(report)
    button = page.all("#curves button.method")[0]
    button.click()
    assert lines(page) == ["FedAvg"]
    assert button.get_attribute("aria-pressed") == "false"
    assert [f.get_attribute("data-method") for f in page.all("#estimate figure")] == ["FedAvg"]
    assert page.readout()[1]["Fast-FedDA"][0] == ""
    button.send_keys(Keys.SPACE)
    assert lines(page) == ["Fast-FedDA", "FedAvg"]
    show, hide = page.all("#curves .actions button")
    hide.click()
    assert lines(page) == []
    show.click()
    assert lines(page) == ["Fast-FedDA", "FedAvg"]
    assert page.errors() == []


def test_axis_choices_change_the_ticks(page, report, groups, Keys):
    page.open(report)
    logarithmic = page.texts("#curves .ticks.y text")
    page.press("linear")
    linear = page.texts("#curves .ticks.y text")
    assert linear != logarithmic
    steps = np.diff([number(t) for t in linear])
    assert steps == pytest.approx(np.full(len(steps), steps[0]))
    assert number(page.texts("#curves .ticks.x text")[-1]) == 40
    page.press("steps")
    assert number(page.texts("#curves .ticks.x text")[-1]) == 300  # FedAvg: 40 rounds of 8 steps are 320
    assert page.text('#curves [data-value="steps"]') == "Local steps"
    page.press("bytes")
    assert all(re.fullmatch(r"[\d.]+\u202fk?B", t) for t in page.texts("#curves .ticks.x text"))
    keys(page, CHART, Keys.END)
    ledger = groups["FedAvg"][0].ledger
    assert page.readout()[0] == f"Sent {(ledger.bytes_up + ledger.bytes_down) / 1000:g}\u202fkB"


def test_tabs_choose_the_metric(page, report, groups, Keys):
    page.open(report)
    tabs = page.all('[role="tab"]')
    assert [tab.text for tab in tabs] == ["ℓ2 error", "nonzeros", "objective"]
    assert page.script("return document.querySelector('.reference text').textContent") == "reference 0.2000"
    tabs[0].send_keys(Keys.ARROW_RIGHT)
    assert [tab.get_attribute("aria-selected") for tab in tabs] == ["false", "true", "false"]
    assert focused(page, "#tab1")
    assert page.text("#chart-title") == "nonzeros"
    assert page.all(".reference") == []
    for name, values in means(groups, "nonzeros", 40).items():
        assert number(page.readout()[1][name][0]) == pytest.approx(np.mean(values), rel=1e-3)


def test_arrow_keys_move_the_crosshair(page, report, groups, Keys):
    page.open(report)
    keys(page, CHART, Keys.HOME)
    assert page.readout()[0] == "Round 0"
    keys(page, CHART, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert page.readout()[0] == "Round 4"
    spoken = page.one(CHART).get_attribute("aria-valuetext")
    expected = np.mean(means(groups, "l2", 4)["FedAvg"])
    assert spoken.startswith("Round 4: Fast-FedDA ")
    assert number(spoken.split("FedAvg ")[1]) == pytest.approx(expected, rel=1e-3)
    keys(page, CHART, Keys.END)
    assert page.readout()[0] == "Round 40"
    keys(page, CHART, Keys.ESCAPE)
    assert page.readout()[0] == "at the end"


def test_tab_key_reaches_every_control_with_visible_focus(page, report, Keys):
    page.open(report)
    reached = []
    for _ in range(25):
        page.script("return document.activeElement").send_keys(Keys.TAB)
        reached.append(
            page.script("""
                const e = document.activeElement, style = getComputedStyle(e);
                const outlined = style.outlineStyle !== "none" && style.outlineWidth !== "0px";
                return [e.id || e.dataset.value || e.className, outlined]""")
        )
        if reached[-1][0] == "stems":
            break
    names = [name for name, _ in reached]
    wanted = "theme tab0 log linear round steps bytes chart method error stems"
    for control in wanted.split():
        assert control in names, names
    assert all(outlined for _, outlined in reached), reached


def test_values_as_tables(page, report, groups):
    page.open(report)
    for summary in page.all("summary"):
        summary.click()
    rows = page.script("""return [...document.querySelectorAll("#curves details tbody tr")].map(
        r => [...r.cells].map(c => c.textContent))""")
    assert [int(row[0]) for row in rows] == groups["FedAvg"][0].history["round"].tolist()
    fast = np.mean([run.history["l2"] for run in groups["Fast-FedDA"]], axis=0)
    assert [number(row[1].split(" ")[0]) for row in rows] == pytest.approx(fast, rel=1e-3)
    coefficients = page.script("""return [...document.querySelectorAll("#estimate-values tbody tr")].map(
        r => [...r.cells].map(c => c.textContent))""")
    assert [number(row[2]) for row in coefficients] == pytest.approx(groups["Fast-FedDA"][0].w, rel=1e-3)


def test_coefficients_are_read_at_the_crosshair(page, report, groups, Keys):
    page.open(report)
    keys(page, ".stems", Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    w = groups["FedAvg"][0].w[2]
    spoken = page.one(".stems").get_attribute("aria-valuetext")
    assert number(re.search(r"FedAvg (\S+) \(truth 1\.000\)", spoken)[1]) == pytest.approx(w, rel=1e-3)
    page.press("error")
    keys(page, ".stems", Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    spoken = page.one(".stems").get_attribute("aria-valuetext")
    assert number(re.search(r"FedAvg error (\S+)", spoken)[1]) == pytest.approx(w - 1, rel=1e-3)


def test_singular_values(page, lowrank, tmp_path, Keys):
    run, truth = lowrank
    page.open(write_report(tmp_path / "r.html", {"MiD": [run]}, title="T", truth=truth))
    assert page.text("#estimate-heading") == "Singular values against the truth"
    keys(page, "#estimate .chart", Keys.HOME, Keys.ARROW_RIGHT)
    second = np.linalg.svd(run.w, compute_uv=False)[1]
    spoken = page.one("#estimate .chart").get_attribute("aria-valuetext")
    assert number(spoken.split("MiD ")[1]) == pytest.approx(second, rel=1e-3)
    assert "truth 1.000" in spoken
    assert page.errors() == []


def test_dark_mode_follows_the_system_and_the_button(page, report):
    def colours():
        return page.script("const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]")

    page.open(report)
    light = colours()
    page.media(dark=True)
    page.wait(lambda: colours() != light)
    dark = colours()
    page.one(THEME).click()
    assert colours() == light
    page.one(THEME).click()
    assert colours() == dark
    assert page.one(THEME).get_attribute("aria-pressed") == "true"
    page.media(dark=True, kind="print")
    assert colours()[1] == light[1]  # dark ink on paper
    page.open(report, dark=True)
    assert colours() == dark


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(page, report, dark):
    """WCAG's 4.5 : 1 for every piece of text, against the nearest background behind it."""
    page.open(report, dark=dark)
    poor = page.script("""
        const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        const weights = [0.2126, 0.7152, 0.0722];
        const light = (rgb) => weights.reduce((sum, w, i) => sum + w * linear(rgb[i] / 255), 0);
        const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
        const behind = (e) => {
            const c = numbers(getComputedStyle(e).backgroundColor);
            return c.length === 3 || c[3] > 0 ? c.slice(0, 3) : behind(e.parentElement);
        };
        const written = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
        const bad = [];
        for (const e of document.querySelectorAll("body *")) {
            if (!written(e) || !e.getClientRects().length) continue;
            if (e.closest("script, .unseen, :disabled, .cross")) continue;
            const style = getComputedStyle(e), ink = numbers(e.ownerSVGElement ? style.fill : style.color);
            const [a, b] = [light(ink), light(behind(e))];
            const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (ratio < 4.5) bad.push([e.textContent.slice(0, 30), ratio]);
        }
        return bad;""")
    assert poor == []


@pytest.mark.parametrize("width", [360, 820])
def test_no_sideways_scrolling(page, groups, diverged, dense, data, tmp_path, width):
    long = "a_name_without_any_space_that_goes_on_and_on_and_on_and_on_and_on"
    many = {f"method {i}": runs for i, runs in enumerate(list(groups.values()) * 9)}
    crowd = {long: groups["FedAvg"], **many, "diverged": [diverged], "dense": [dense]}
    verdict = Verdict(
        [Comparison(n, "l2", 100 * r, 1.0, 1.0 + 0.02 * r, 0.9, 1.1) for n in crowd for r in range(1, 9)]
    )
    path = tmp_path / "r.html"
    write_report(path, crowd, title=long, truth=data.truth, commands=[f"unpooled {long}"], verdict=verdict)
    page.open(path, width=width)
    assert page.overflow() == 0
    for summary in page.all("summary"):
        page.script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].click()", summary)
    assert page.overflow() == 0
    outside = page.script("""return [...document.querySelectorAll("svg text")].filter(t => {
        const box = t.getBoundingClientRect();
        return box.width && (box.left < -1 || box.right > innerWidth + 1);
    }).length""")
    assert outside == 0
    assert page.errors() == []


def test_charts_follow_the_width(page, report):
    page.open(report)
    page.resize(500)
    drawn = "return document.querySelector('#curves .chart svg').viewBox.baseVal.width"
    page.wait(lambda: page.script(drawn) <= 500)
    assert page.overflow() == 0


def test_hostile_names_are_inert(page, groups, tmp_path):
    evil = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
    run = dataclasses.replace(groups["FedAvg"][0], message=evil, notes=[evil])
    page.open(write_report(tmp_path / "r.html", {evil: [run], "b": [run]}, title=evil, labels={"l2": evil}))
    for summary in page.all("summary"):
        summary.click()
    assert page.script("return window.hacked") is None
    assert page.text("h1") == evil
    assert page.texts("#curves .legend .name")[0] == evil
    assert page.all("img") == []
    assert page.errors() == []


def test_dense_history_is_drawn_with_its_spikes(page, dense, tmp_path, Keys):
    page.open(write_report(tmp_path / "r.html", {"dense": [dense]}, title="T"))
    stops = int(page.one(CHART).get_attribute("aria-valuemax"))
    assert 400 < stops < 800
    page.one("#curves summary").click()
    drawn = page.script(
        "return document.querySelector('#curves .line path').getAttribute('d').split(/[ML]/).length"
    )
    assert drawn == stops + 2
    keys(page, CHART, Keys.HOME)
    assert number(page.readout()[1]["dense"][0]) == pytest.approx(dense.history["objective"][0], rel=1e-3)


def test_a_diverged_run_says_so(page, groups, diverged, data, tmp_path, Keys):
    page.open(write_report(tmp_path / "r.html", {**groups, "bad": [diverged]}, title="T", truth=data.truth))
    assert page.text(".headline") == "7 runs of 3 methods, 6 completed."
    assert f"bad, seed 0: diverged. {diverged.message}" in page.text(".troubles")
    assert page.text("#curves tr[data-method=bad] .trouble") == "diverged"
    assert len(page.all(".breakdown")) == 1
    ticks = [number(t) for t in page.texts("#curves .ticks.y text")]
    assert max(ticks) < 100  # its line leaves the frame, the others stay readable
    keys(page, CHART, Keys.END)
    assert page.readout()[1]["bad"][0] == f"ended at {diverged.history['round'][-1]}"
    assert page.errors() == []


def test_one_run_with_one_row(page, groups, tmp_path):
    run = groups["FedAvg"][0]
    run = dataclasses.replace(run, history={name: run.history[name][:1] for name in ("round", "objective")})
    page.open(write_report(tmp_path / "r.html", {"only": [run]}, title="T"))
    assert page.all('[role="tab"]') == []
    assert len(page.all("#curves .line circle")) == 1
    assert page.texts("#curves .ticks.x text") == ["0", "1"]
    assert page.errors() == []


def test_nothing_recorded(page, groups, tmp_path):
    run = dataclasses.replace(groups["FedAvg"][0], history={}, status=Status.DIVERGED, message="At once.")
    page.open(write_report(tmp_path / "r.html", {"only": [run]}, title="T"))
    assert "Nothing was recorded" in page.text("#curves")
    assert page.errors() == []


def test_values_that_are_not_positive(page, groups, tmp_path):
    run = groups["FedAvg"][0]
    history = {"round": np.arange(4), "objective": np.array([2.0, -1.0, np.nan, 3.0]), "zero": np.zeros(4)}
    run = dataclasses.replace(run, history=history)
    page.open(
        write_report(
            tmp_path / "r.html",
            {"only": [run]},
            title="T",
            log={"objective": True},
            references={"objective": 0.0},
        )
    )
    assert "NaN" not in page.script("return document.querySelector('#curves').innerHTML")
    assert "not drawn on the logarithmic axis" in page.text(".remark")
    page.one("#tab1").click()
    assert not page.one('#curves [data-value="log"]').is_enabled()
    assert page.errors() == []


def test_print_shows_everything_on_paper(page, report):
    page.open(report)
    pdf = page.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert pdf.startswith("JVBER")
    page.media(kind="print")
    assert not page.one(THEME).is_displayed()
    assert page.one(CHART).is_displayed()
    page.media()


def test_no_animation_where_motion_is_unwanted(page, report):
    page.open(report)
    reduced = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", reduced)
    assert page.script("return getComputedStyle(document.querySelector('button')).transitionDuration") == "0s"
