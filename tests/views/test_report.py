"""The report: complete, offline, deaf to what models write into it."""

import base64
import hashlib
import re
import shutil
from html.parser import HTMLParser

import pytest

from loopkit.store import Run
from loopkit.views import write_report

HOSTILE = "</script></title><script>document.title='owned'</script>"
HOSTILE += "<img src=https://example.org/x onerror=alert(1)>\ud800"


def row(arm="clauses", model="embedded", **more):
    numbers = {"n": 4, "correct": 2, "wrong": 1, "accuracy": 0.5, "wilson_low": 0.15, "wilson_high": 0.85}
    spent = {"failures": {"empty": 1}, "errors": 0, "tokens": 12_345, "seconds": 6.25}
    return {"experiment": "knights", "arm": arm, "model": model} | numbers | spent | more


def claim(verdict, says="Clauses beat reasoning.", **more):
    numbers = {"p": 0.0321, "effect": 0.25, "explained": "3 items against 1"}
    return {"id": verdict.replace(" ", "-"), "says": says, "verdict": verdict} | numbers | more


def trial(result="correct", item="kk-1", **more):
    return {
        "run": f"run-{item}",
        "item": item,
        "arm": "clauses",
        "model": "embedded",
        "result": result,
    } | more


def summary(**more):
    return {
        "batch": "Knights",
        "question": "Do clauses help?",
        "rows": [row(), row("reasoning")],
        "groups": [row(people=people, perturb="none") for people in (2, 3)],
        "claims": [claim("supported"), claim("not supported"), claim("contradicted", p=None, effect=None)],
        "provenance": {"Run again": "loopkit batch x.yaml"},
    } | more


def example(note="too long", **params):
    turn = {"event": "iteration", "iteration": 1, "decision": "keep", "score": 0.5, "error": None}
    feedback = {"blocking": [note], "suggestions": []}
    events = [{"event": "start", "params": params}, {"event": "goal", "gates": ["Threshold(score=0.8)"]}]
    return Run("example-1", [*events, turn | {"feedback": feedback}])


class Page(HTMLParser):
    """Tags with their attributes, the scripts, and the text outside of scripts and styles."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.scripts, self.text, self._open = [], [], "", ""
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = tag
        if tag == "script":
            self.scripts.append([dict(attrs).get("type"), ""])

    def handle_endtag(self, tag):
        self._open = ""

    def handle_data(self, data):
        if self._open == "script":
            self.scripts[-1][1] += data
        elif self._open != "style":
            self.text += f" {data}"


@pytest.fixture
def report(tmp_path):
    def write(trials=(), examples=(), **more):
        return Page(
            write_report(tmp_path / "out" / "report.html", summary(**more), trials, examples=examples)
        )

    return write


def test_the_order_is_question_claims_arms_failures_trials_provenance(report):
    text = report([trial()], [example()]).text
    heads = ["Do clauses help?", "Claims", "Clauses beat", "Arms", "Accuracy by people", "Failures by kind"]
    places = [
        text.index(head) for head in [*heads, "Convergence", "Trials", "Provenance", "loopkit batch x.yaml"]
    ]
    assert places == sorted(places)


def test_claims_show_their_verdict_in_words_and_their_numbers(report):
    text = report().text
    assert all(
        badge in text for badge in ("✓ supported", "○ not supported", "✗ contradicted", "3 items against 1")
    )
    assert "effect +0.25 · p = 0.032 · supported" in text
    assert "p < 0.001" in report(claims=[claim("supported", p=1e-9)]).text
    assert "? undecided" in report(claims=[claim("undecided")]).text


def test_failures_wrong_answers_and_what_could_not_run_are_apart(report):
    page = report(rows=[row(), row("reasoning", failures={"truncated": 7}, errors=3)])
    assert "Failed: empty" in page.text and "Failed: truncated" in page.text
    assert "3 trials could not run." in page.text


def test_what_could_not_run_is_listed_with_its_reason_at_the_top(report):
    errors = [trial("error", f"kk-{n}", kind="ConnectError", detail="refused") for n in (1, 2)]
    text = report([*errors, trial("error", "kk-3")]).text
    assert (
        "ConnectError: refused" in text
        and "2 × (run-kk-1, run-kk-2)" in text
        and "no reason recorded" in text
    )
    assert text.index("3 trials could not run.") < text.index("Claims")
    assert "trials could not run." not in report([trial()]).text


def test_simulated_models_are_labelled(report):
    assert "simulated" not in report().text.replace("open symbols are simulated models", "")
    page = report(rows=[row(model="simulated:random")], examples=[example(model="simulated:random")])
    assert "Some results come from simulated models" in page.text
    assert "Run example-1, random (simulated)." in page.text and " random (simulated) " in page.text


def test_wrong_and_failed_trials_come_first_and_the_list_is_bounded(report):
    trials = [trial("correct", f"c{n}") for n in range(600)] + [trial("failed", "f1"), trial("wrong", "w1")]
    text = report(trials).text
    assert text.index("w1") < text.index("f1") < text.index(" c0 ") and "c599" not in text
    assert "602 trials" in text and "600 ✓ correct" in text and "The first 500 are listed." in text


def test_trials_may_lack_keys_or_have_others(report):
    page = report(
        [{"result": "wrong", "surprise": {"a": 1}}, {}, trial("unheard of", tokens=1234, seconds="?")]
    )
    assert "3 trials" in page.text and "1,234" in page.text and "unheard of" in page.text


def test_rows_without_results(report):
    nothing = {
        "n": 0,
        "correct": 0,
        "accuracy": None,
        "wilson_low": None,
        "wilson_high": None,
        "failures": {},
    }
    assert "–" in report(rows=[row(**nothing)], groups=[], claims=[]).text
    assert "no arm has been tried" in "".join(script for _, script in report(rows=[], groups=[]).scripts)


def test_hostile_text_stays_text(report):
    hostile_row = row(HOSTILE, HOSTILE, failures={HOSTILE: 1}, experiment=HOSTILE)
    page = report(
        [trial("error", HOSTILE, kind=HOSTILE, detail=HOSTILE), trial(HOSTILE, arm=HOSTILE)],
        [example(HOSTILE, model=HOSTILE)],
        batch=HOSTILE,
        question=HOSTILE,
        rows=[hostile_row, row()],
        groups=[hostile_row | {"people": HOSTILE}, row(people=2)],
        claims=[claim(HOSTILE, HOSTILE, id=HOSTILE, explained=HOSTILE)],
        provenance={HOSTILE: HOSTILE},
    )
    assert {kind for kind, _ in page.scripts[:-2]} == {"application/json"}
    assert [kind for kind, _ in page.scripts[-2:]] == [None, None]
    assert not any("title='owned'" in script for kind, script in page.scripts if kind is None)
    assert not any("<" in script for kind, script in page.scripts if kind)
    assert not any(tag == "img" or name.startswith("on") for tag, attrs in page.tags for name in attrs)
    assert page.text.count("document.title='owned'") > 10


def test_nothing_is_loaded_and_only_its_own_scripts_may_run(report):
    page = report([trial()], [example()])
    names = {name for _, attrs in page.tags for name in attrs}
    assert not names & {"src", "href", "srcset", "action", "data", "poster", "style"}
    [policy] = [
        attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy
    own = [script for kind, script in page.scripts if kind is None]
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in own]
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes and "plotly.js v" in own[0]


def test_it_is_written_whole_or_not_at_all(tmp_path):
    path = write_report(tmp_path / "a" / "report.html", summary(), [])
    assert path == tmp_path / "a" / "report.html"
    before = path.read_bytes()
    with pytest.raises(KeyError, match="claims"):
        write_report(path, {key: value for key, value in summary().items() if key != "claims"}, [])
    write_report(str(path), summary(), [])
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        write_report(tmp_path / "file" / "report.html", summary(), [])


@pytest.mark.browser
def test_in_a_browser_without_network(tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on the PATH")
    trials = [trial("wrong", "kk-1"), trial("failed", "kk-2", detail=HOSTILE), trial("correct", "kk-3")]
    path = write_report(tmp_path / "report.html", summary(), trials, examples=[example(HOSTILE)])
    complaints, asked = [], []
    with sync_api.sync_playwright() as play:
        arguments = ["--headless", "--no-sandbox", "--disable-background-networking"]
        browser = play.chromium.launch(executable_path=chromium, args=arguments)
        context = browser.new_context(offline=True, viewport={"width": 400, "height": 800})
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        sync_api.expect(page.locator(".plot > .js-plotly-plot, .plot.js-plotly-plot")).to_have_count(3)
        sync_api.expect(page.locator(".plot .main-svg .scatterlayer").first).to_be_visible()
        sync_api.expect(page.get_by_text("✗ contradicted")).to_be_visible()
        assert page.title() == "Knights"
        assert page.evaluate("document.documentElement.scrollWidth") == 400, "the page scrolls sideways"

        page.locator("#trials > summary").click()
        rows = page.locator("#trials tbody tr:visible")
        sync_api.expect(rows).to_have_count(3)
        page.locator("#filter").fill("CLAUSES wrong")
        sync_api.expect(rows).to_have_count(1)
        sync_api.expect(page.locator("#count")).to_have_text("1 of 3")
        page.locator("#filter").fill("")
        sync_api.expect(rows).to_have_count(3)
        browser.close()
    assert complaints == []
    assert asked == [path.as_uri()]
