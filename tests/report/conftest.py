"""Small real runs, and a real Chromium that opens reports from disk."""

import dataclasses
import os
import shutil

import numpy as np
import pytest

import unpooled as up
from unpooled.report import write_report

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PROBLEM = up.Problem(up.Squared(), up.L1(0.1))
FAST = up.FastFedDA(mu=0.1, gamma=80.0, local_steps=4, schedule="uniform")


@pytest.fixture(scope="session")
def data():
    return up.datasets.sparse_regression(seed=2, n_clients=12, n_rows=30, n_features=40, sparsity=8)


@pytest.fixture(scope="session")
def go(data):
    def go(algorithm, **options):
        measured = {"l2": up.metrics.l2_error(data.truth), "nonzeros": up.metrics.nonzeros()}
        defaults = {"rounds": 40, "cohort": 5, "batch_size": 7, "seed": 0, "every": 2, "metrics": measured}
        return up.simulate(algorithm, PROBLEM, data, **{**defaults, **options})

    return go


@pytest.fixture(scope="session")
def groups(go):
    """Two methods with three seeds each; the second does twice the local steps."""
    methods = {"Fast-FedDA": FAST, "FedAvg": up.FedAvg(step=0.01, local_steps=8)}
    return {name: [go(method, seed=seed) for seed in range(3)] for name, method in methods.items()}


@pytest.fixture(scope="session")
def diverged(go):
    run = go(up.FedAvg(step=0.3, local_steps=4), rounds=300, every=1)
    assert run.status == "diverged"
    return run


@pytest.fixture(scope="session")
def lowrank(groups):
    """A run with the estimate of a low-rank problem put in, which saves compiling that problem's kernels."""
    truth = up.datasets.low_rank_regression(seed=0, n_clients=2, n_rows=2, shape=(9, 7), rank=3).truth
    run = groups["FedAvg"][0]
    settings = {**run.settings, "problem": repr(up.Problem(up.Squared(), up.Nuclear(0.1)))}
    noise = 0.05 * np.random.default_rng(0).standard_normal(truth.shape)
    return dataclasses.replace(run, w=0.9 * truth + noise, settings=settings), truth


@pytest.fixture(scope="session")
def dense(groups):
    """A history of 15 001 rounds with one spike up and one down that only single rounds show."""
    rng = np.random.default_rng(0)
    values = 5.0 + rng.standard_normal(15001).cumsum() * 1e-3
    values[7001], values[9003] = 99.0, 0.01
    history = {"round": np.arange(15001), "objective": values}
    return dataclasses.replace(groups["Fast-FedDA"][0], history=history)


class Page:
    """What the tests do with a page, in the words of its user."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, path, width=1280, height=900, dark=False):
        self.resize(width, height)
        self.media(dark=dark)
        self.driver.get(path.resolve().as_uri())
        return self

    def resize(self, width, height=900):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def media(self, dark=False, kind=""):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": kind, "features": [scheme]})

    def script(self, source, *arguments):
        return self.driver.execute_script(source, *arguments)

    def all(self, css):
        return self.driver.find_elements("css selector", css)

    def one(self, css):
        (found,) = self.all(css)
        return found

    def text(self, css):
        return self.one(css).text

    def texts(self, css):
        """Of drawings too, which have no innerText."""
        return self.script("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", css)

    def press(self, value):
        self.script("arguments[0].scrollIntoView({block: 'center'})", self.all(f'[data-value="{value}"]')[0])
        self.all(f'[data-value="{value}"]')[0].click()

    def hover(self, css, share):
        """Put the pointer at this share of the element's width."""
        from selenium.webdriver import ActionChains

        element = self.one(css)
        self.script("arguments[0].scrollIntoView({block: 'center'})", element)
        across = int(element.rect["width"] * (share - 0.5))
        ActionChains(self.driver, duration=0).move_to_element_with_offset(element, across, 0).perform()

    def readout(self):
        """The legend: heading, and by method the value and the range."""
        rows = self.script("""return [...document.querySelectorAll("#curves .legend tbody tr")].map(
            row => [row.dataset.method, ...[...row.cells].slice(1).map(cell => cell.innerText)])""")
        return self.texts("#read-at")[0], {name: cells for name, *cells in rows}

    def errors(self):
        return [entry for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def overflow(self):
        return self.script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    def wait(self, until):
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 10, 0.02).until(lambda _: until())


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    if not (os.path.exists(CHROMIUM) and os.path.exists(DRIVER)):
        pytest.skip("needs Debian's chromium and chromium-driver in /usr/bin")
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium, which unpooled[dev] brings")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("chromium")
    for flag in [*FLAGS, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(executable_path=DRIVER))
    yield driver
    driver.quit()
    shutil.rmtree(profile, ignore_errors=True)


@pytest.fixture
def page(chromium):
    page = Page(chromium)
    chromium.get("about:blank")
    for log in ("browser", "performance"):
        chromium.get_log(log)
    return page


@pytest.fixture(scope="session")
def report(groups, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    labels = {"l2": "ℓ2 error", "nonzeros": "nonzeros"}
    return write_report(
        path, groups, title="Two methods", labels=labels, log={"l2": True}, references={"l2": 0.2},
        truth=data.truth, commands=["unpooled reproduce lasso --seeds 3"],
    )  # fmt: skip
