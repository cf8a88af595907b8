"""In JupyterLab, in a browser: notebooks run, sliders move, a live run is stopped, forked, and seen again.

One server and one browser for all of it; each test opens a notebook of its own.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
SECONDS = 90
"""How long anything may take on a busy machine."""
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},  # all outputs are on the page
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}
SMALL = {
    "00_the_loop": {"model": "simulated:random", "turns": 4},
    "01_flows": {"model": "simulated:random", "walks": 3},
    "02_constraint_solving": {"model": "simulated:random", "people": 2, "count": 2},
    "03_judges": {"model": "simulated:fair-judge", "count": 3, "calibrated": 2},
    "04_code_aided_math": {"model": "simulated:oracle", "count": 2},
}
WIDGETS = """
import asyncio, loopkit
from loopkit import Loop, MaxIterations, Store, Threshold

store = Store("runs")

def draft(goal, history):
    return f"draft {len(history) + 1} of <{goal}>"

async def wait(text):
    await asyncio.sleep(0.15)
    return text

def grade(text, shown):
    return min(int(text.split()[1]) / 1000, 1.0)

loop = Loop(propose=draft, execute=wait, judge=grade, gates=[Threshold(0.9), MaxIterations(2000)])
# ---
live = loopkit.watch(loop, "goal", log=store.create("one"))
live
# ---
(await live).stopped_by.gate
# ---
loopkit.explore(store.path("one"), loop=loop)
# ---
short = {"propose": draft, "execute": lambda text: text, "judge": grade}
runs = {n: await Loop(**short, gates=[MaxIterations(n)]).run(f"{n}") for n in (2, 5)}
loopkit.compare(runs)
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The folder that a JupyterLab serves, and its address; no settings of the user's, no network."""
    home = tmp_path_factory.mktemp("lab")
    folder, settings = home / "notebooks", home / "settings"
    folder.mkdir()
    for name, values in SETTINGS.items():
        path = settings / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    where = (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "JUPYTERLAB_WORKSPACES_DIR",
        "IPYTHONDIR",
    )
    own = {name: str(home / name.lower()) for name in where} | {"JUPYTERLAB_SETTINGS_DIR": str(settings)}
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--port=0",
        "--ip=127.0.0.1",
    ]
    command += ["--IdentityProvider.token=t", "--expose-app-in-browser", f"--ServerApp.root_dir={folder}"]
    command += ["--LabApp.extension_manager=readonly", "--ServerApp.terminals_enabled=False"]
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=home, env=os.environ | own | {"PYTHONPATH": paths}
        )
        try:
            yield folder, _address(server, Path(own["JUPYTER_RUNTIME_DIR"]), home / "server.log")
        finally:
            server.terminate()
            server.wait(30)


def _address(server, runtime, log):
    """Where the server answers. It writes a file about itself once it knows its port."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and server.poll() is None:
        for path in runtime.glob("jpserver-*.json"):
            try:
                url = json.loads(path.read_text())["url"]
                urllib.request.urlopen(f"{url}api/status?token=t", timeout=5).close()
                return url
            except (OSError, ValueError):
                pass
        time.sleep(0.1)
    pytest.fail(f"no JupyterLab: {log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    sync_api.expect.set_options(timeout=SECONDS * 1000)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on the PATH")
    with sync_api.sync_playwright() as play:
        arguments = ["--headless", "--no-sandbox", "--disable-background-networking"]
        opened = play.chromium.launch(executable_path=chromium, args=arguments)
        yield opened
        opened.close()


@pytest.fixture
def opened(lab, browser):
    """Opens a notebook in JupyterLab, runs all its cells, and returns the page; afterwards nobody has complained."""
    folder, url = lab
    context = browser.new_context(viewport={"width": 1200, "height": 1400}, color_scheme="light")
    page, complaints = context.new_page(), []
    page.set_default_timeout(SECONDS * 1000)
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def run(name, notebook, meanwhile=lambda page: None):
        nbformat.write(notebook, folder / f"{name}.ipynb")
        page.goto(f"{url}lab/tree/{name}.ipynb?token=t&reset")
        page.wait_for_function(f"{PANEL}?.sessionContext?.session?.kernel?.status == 'idle'")
        page.evaluate("void jupyterapp.commands.execute('notebook:run-all-cells')")
        meanwhile(page)
        page.wait_for_function(
            f"{PANEL}.content.widgets.every(cell => cell.model.type != 'code' || cell.model.executionCount)"
        )
        page.wait_for_function(f"{PANEL}.sessionContext.session.kernel.status == 'idle'")
        said = page.evaluate(
            f"{PANEL}.content.widgets.flatMap(cell => cell.model.type == 'code' ? cell.model.sharedModel.outputs : [])"
        )
        assert [one for one in said if one["output_type"] == "error" or one.get("name") == "stderr"] == []
        return page

    yield run
    assert page.get_by_text("Error displaying widget").count() == 0
    page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")
    context.close()
    assert complaints == []


PANEL = "window.jupyterapp?.shell.currentWidget"


def small(name):
    """The notebook with a cell after its parameters that makes it short."""
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    at = next(i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", []))
    given = SMALL[name] | {"out": "records"}
    lines = "\n".join(f"{key} = {value!r}" for key, value in given.items())
    assert ast.parse(lines)
    notebook.cells.insert(at + 1, new_code_cell(lines))
    return notebook


def test_a_live_run_is_stopped_resumed_forked_and_compared(opened):
    from playwright.sync_api import expect

    def stop(page):
        live = page.locator(".jp-OutputArea-output").first
        expect(live.get_by_text(re.compile(r"turn \d+ is running"))).to_be_visible()
        expect(live.locator(".js-plotly-plot .scatterlayer .trace").first).to_be_attached()
        live.get_by_role("button", name="stop after this turn").click()  # while a cell awaits the run

    cells = [new_code_cell(source.strip()) for source in WIDGETS.split("# ---")]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    page = opened("widgets", new_notebook(cells=cells, metadata=metadata), stop)
    live, gate, explorer, comparison = (page.locator(".jp-OutputArea-output").nth(at) for at in range(4))
    expect(live.get_by_text("Cancel opened: by the stop button")).to_be_visible()
    expect(gate).to_have_text("'Cancel'")
    assert live.locator("meter").count() == 3 and live.locator("progress").get_attribute("max") == "2000"

    # The explorer has the run; its slider is moved by keys.
    iterations = explorer.locator("tr", has_text="iterations").first
    expect(explorer.get_by_text("stopped", exact=True)).to_be_visible()
    done = int(iterations.locator("td").inner_text())
    expect(explorer.get_by_text(f"iteration {done}: keep")).to_be_visible()
    handle = explorer.get_by_role("slider").first
    handle.focus()
    handle.press("Home")
    expect(explorer.get_by_text("iteration 1: keep")).to_be_visible()
    handle.press("ArrowRight")
    expect(explorer.get_by_text("iteration 2: keep")).to_be_visible()
    expect(explorer.locator("pre").first).to_have_text("draft 2 of <goal>")
    expect(explorer.locator("pre").nth(1).locator("del")).to_have_text(" 1")
    explorer.get_by_role("button", name="open log").click()
    expect(explorer.get_by_text("from line 7:")).to_be_visible()

    # It goes on, is followed while it does, and is stopped again.
    explorer.get_by_role("button", name="resume").click()
    expect(iterations.locator("td")).not_to_have_text(f"{done}")
    stops = explorer.locator("button", has_text=re.compile(r"^\s*stop\s*$"))
    stops.click()
    expect(explorer.get_by_text("It is stopped now.")).to_be_visible()
    assert int(iterations.locator("td").inner_text()) > done
    expect(explorer.get_by_text("iteration 2: keep")).to_be_visible()

    # A fork goes on from where the slider stands, and is explored below.
    explorer.get_by_role("button", name="fork from here").click()
    expect(explorer.get_by_text("one, after iteration 2")).to_be_visible()
    expect(explorer.get_by_text("Forked: one-fork1, below")).to_be_visible()
    expect(explorer.locator(".js-plotly-plot")).to_have_count(2)
    grown = explorer.locator("tr", has_text="iterations").last.locator("td")
    expect(grown).not_to_have_text(re.compile("^[0-3]$"))
    stops.last.click()
    expect(explorer.get_by_text("It is stopped now.")).to_be_visible()

    expect(comparison.locator(".js-plotly-plot").first).to_be_visible()
    expect(comparison.get_by_role("slider")).to_have_count(2)
    comparison.get_by_role("combobox").first.select_option("5")
    expect(comparison.get_by_text("iteration 5: keep")).to_have_count(2)


def test_the_notebook_on_loops_runs_and_its_playground_can_be_played_with(opened):
    from playwright.sync_api import expect

    page = opened("00_the_loop", small("00_the_loop"))
    expect(page.get_by_text("Simulated: drafts, judge and tokens are invented")).to_be_visible()
    bias = page.locator(".widget-hslider", has_text="bias of the judge").get_by_role("slider")
    bias.focus()
    for _ in range(4):
        bias.press("ArrowRight")
    page.wait_for_function(FLATTERED)


FLATTERED = """() => {
  const row = [...document.querySelectorAll("tr")].find(row => row.textContent.startsWith("this run"));
  const [judged, worth] = [...row.querySelectorAll("td")].slice(-2).map(cell => parseFloat(cell.textContent));
  return judged - worth > 0.15;
}"""
"""Whether the judge says more of the draft that was delivered than it is worth."""


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("01_flows", "table"),
        ("02_constraint_solving", ".jp-RenderedPlotly .main-svg"),
        ("04_code_aided_math", ".jp-RenderedPlotly .main-svg"),
    ],
)
def test_a_notebook_runs(opened, name, shown):
    opened(name, small(name)).wait_for_selector(f".jp-NotebookPanel {shown}", state="attached")
