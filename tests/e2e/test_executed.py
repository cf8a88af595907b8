"""Notebooks that a batch has executed, opened without a kernel: as a page made of them, the way nbviewer does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml

pytestmark = pytest.mark.slow
NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "02_constraint_solving.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A notebook of ours after a batch."""
    folder = tmp_path_factory.mktemp("executed")
    grid = [{"arm": "clauses", "model": "simulated:oracle", "people": 2, "count": 20}]
    data = {"experiment": "knights", "notebook": str(NOTEBOOK), "question": "Who is what?", "grid": grid}
    (folder / "one.yaml").write_text(yaml.safe_dump(data))
    env = {name: value for name, value in os.environ.items() if name != "PLOTLY_RENDERER"}
    command = [
        sys.executable,
        "-m",
        "loopkit",
        "batch",
        str(folder / "one.yaml"),
        "--out",
        str(folder / "out"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    (path,) = (folder / "out" / "notebooks").glob("*.ipynb")
    return path


def test_it_is_small_and_has_its_figures_for_jupyterlab(executed):
    assert executed.stat().st_size < 300_000
    cells = nbformat.read(executed, as_version=4).cells
    shown = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    assert any("application/vnd.plotly.v1+json" in data for data in shown)


@pytest.mark.browser
def test_a_page_made_of_it_shows_its_figures(executed, tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on the PATH")
    from nbconvert import HTMLExporter
    from plotly.offline import get_plotlyjs

    page_file = tmp_path / "page.html"
    page_file.write_text(HTMLExporter().from_filename(str(executed))[0], encoding="utf-8")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
        page = browser.new_page()
        # What the page takes from the web; the tests have none. Its version is the one that drew the figure.
        page.route("https://**/*", lambda route: route.abort())
        headers = {"content-type": "text/javascript", "access-control-allow-origin": "*"}
        page.route(
            "https://cdn.plot.ly/**", lambda route: route.fulfill(body=get_plotlyjs(), headers=headers)
        )
        page.goto(page_file.as_uri())
        page.wait_for_selector(
            ".js-plotly-plot .main-svg .scatterlayer .trace, .js-plotly-plot .main-svg .barlayer .trace",
            state="attached",
        )
        browser.close()
