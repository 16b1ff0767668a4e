"""Coefficients as pictures, and sweeps on their own axes, in a real Chromium."""

import dataclasses

import numpy as np
import pytest

from unpooled.experiments.sweep import Line, read_study
from unpooled.report import write_report
from unpooled.report.sweep_report import study_report


@pytest.fixture
def painted(groups):
    """Two methods with three classes of 4 × 5 pixels; the second has the lower objective."""
    w = np.zeros((20, 3))
    w[7, 0], w[8, 0], w[19, 2] = 2.0, -1.0, 1e-9
    found = {}
    for name, scale in (("first", 1.0), ("second", -2.0)):
        run = groups["FedAvg"][0]
        history = {"round": np.array([0, 1]), "objective": np.array([9.0, 5.0 + scale])}
        found[name] = [dataclasses.replace(run, w=scale * w, history=history)]
    return found


PIXEL = """const [canvas, x, y] = arguments;
return [...canvas.getContext("2d").getImageData(x, y, 1, 1).data];"""


def test_pictures_show_sign_size_and_zero(page, painted, tmp_path):
    page.open(write_report(tmp_path / "r.html", painted, title="T", image=(4, 5)))
    assert page.text("#estimate-heading") == "What was learned, as pictures"
    canvases = page.all("#estimate canvas")
    assert len(canvases) == 3
    assert page.errors() == []  # reading pixels back, as below, makes Chromium give advice
    assert canvases[0].get_attribute("aria-label") == "Coefficients of class 0: 90\u202f% zero"
    against, supports = page.script(PIXEL, canvases[0], 2, 1), page.script(PIXEL, canvases[0], 3, 1)
    assert against[0] > against[2]  # the second method, whose signs are turned
    assert supports[2] > supports[0]
    assert 100 < supports[3] < against[3] == 255
    assert page.script(PIXEL, canvases[0], 0, 0)[3] == 0
    assert page.script(PIXEL, canvases[2], 4, 3)[3] > 0  # tiny, but not zero
    page.press("first")
    turned = page.script(PIXEL, page.all("#estimate canvas")[0], 2, 1)
    assert turned[2] > turned[0]


def test_hidden_methods_have_no_picture(page, painted, tmp_path):
    page.open(write_report(tmp_path / "r.html", painted, title="T", image=(4, 5)), width=360)
    assert page.overflow() == 0
    for button in page.all("#curves button.method"):
        button.click()
    assert page.all("#estimate canvas") == []
    assert "All methods are switched off." in page.text("#estimate")


@pytest.fixture
def sweeps(groups, tmp_path):
    study = read_study("speedup")
    found = []
    for name, method, slope in (("horizon", "Fast-FedDA", -1.0), ("recovery", "C-FedDA", 1.0)):
        sweep = study.sweeps[name]
        found.append(Line(sweep, method, tuple((0.9 * x**slope, 1.1 * x**slope) for x in sweep.x)))
    runs = [groups["FedAvg"][0]] * 20
    return study_report(study, found, runs, tmp_path / "s.html", "unpooled reproduce speedup")


def test_a_sweep_has_its_own_axis(page, sweeps):
    page.open(sweeps)
    assert page.text("#curves-heading") == "Scaling"
    assert page.texts("#curves .ticks.x text") == ["256", "512", "1\u202f024", "2\u202f048", "4\u202f096"]
    assert not page.all('#curves [data-value="bytes"]')
    page.hover("#curves .chart", 0.55)
    at, rows = page.readout()
    assert at == "local steps T 1\u202f024"
    assert float(rows["Fast-FedDA"][0].replace("e\u2212", "e-")) == pytest.approx(1 / 1024, rel=1e-3)
    page.one("#tab1").click()
    assert page.script("return [...document.querySelectorAll('#curves .line')].length") == 2  # and the bound
    shown = page.script("""return [...document.querySelectorAll("#curves .legend tbody tr")]
        .filter(row => !row.hidden).map(row => row.dataset.method)""")
    assert shown == ["C-FedDA", "the theorem's bound 4√s λ/μ"]
    assert page.errors() == []


@pytest.mark.parametrize("dark", [False, True])
def test_a_study_fits_a_phone(page, sweeps, dark):
    page.open(sweeps, width=360, dark=dark)
    assert page.overflow() == 0
    assert "2 of 2 fitted slopes are in the expected range" in page.text(".headline")
