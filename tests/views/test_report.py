"""The report: complete, offline, deaf to what models write into it."""

import base64
import hashlib
import json
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

    @property
    def data(self):
        return [script for kind, script in self.scripts if kind == "application/json"]

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


def table(page):
    """The rows that the page's script would show, each a list of texts."""
    [data] = [json.loads(script) for script in page.data if '"rows"' in script]
    columns = [[c["texts"][at] for at in c["at"]] if "at" in c else c["texts"] for c in data["columns"]]
    return [list(row) for row in zip(*columns, strict=True)]


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


def test_claims_show_what_holm_makes_of_p_and_when_they_were_declared(report):
    late = {"p_holm": 0.0642, "digest": "0123456789abcdef", "declared": "2026-11-30T20:23:57.417+00:00"}
    text = report(claims=[claim("supported", post_hoc=True, **late)]).text
    assert "✓ supported post hoc" in " ".join(text.split())
    assert "p = 0.032, by Holm p = 0.064 · declared 2026-11-30 20:23 as 0123456789ab · supported" in text
    for same in ({}, {"p_holm": 0.0321, "post_hoc": False}):
        text = report(claims=[claim("supported", **same)]).text
        assert "p = 0.032 · supported" in text and "post hoc" not in text and "Holm" not in text


def test_measures_have_their_means_and_a_column_in_the_trials(report):
    depth = {"n": 3, "mean": 2.5, "low": 1.25, "high": 3.75}
    page = report(
        [trial(measures={"depth": 2.5}), trial("wrong", "kk-2")], rows=[row(measures={"depth": depth})]
    )
    assert "Measures" in page.text and "1.25 – 3.75" in page.text
    [data] = [json.loads(script) for script in page.data if '"rows"' in script]
    [column] = [column for column in data["columns"] if column["title"] == "Depth"]
    assert column["look"] == "num" and "2.5" in column["texts"]
    assert "Measures" not in report().text


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


def test_arms_that_tried_the_same_items_are_compared_on_them(report):
    trials = [trial("correct"), trial("wrong", arm="reasoning"), {"result": "wrong"}, {}]
    page = report(trials)
    assert "The same items" in page.text and "McNemar" in page.text
    assert any("right over left" in script for _, script in page.scripts)
    assert "The same items" not in report(trials[:1]).text


def test_simulated_models_are_labelled(report):
    assert "simulated" not in report().text.replace("open symbols are simulated models", "")
    page = report(rows=[row(model="simulated:random")], examples=[example(model="simulated:random")])
    assert "Some results come from simulated models" in page.text
    assert "Run example-1, random (simulated)." in page.text and " random (simulated) " in page.text


def test_trials_are_counted_on_the_page_and_lie_in_it_as_data(report):
    trials = [trial("correct", f"c{n}") for n in range(5000)] + [trial("failed", "f1"), trial("wrong", "w1")]
    page = report(trials)
    assert "5,002 trials: 1 ✗ wrong, 1 ! failed, 5,000 ✓ correct" in page.text
    assert "c4999" not in page.text and page.text.count("clauses") < 10, "on demand"
    rows = table(page)
    assert len(rows) == 5002 and "w1" in rows[0] and "f1" in rows[1] and "c4999" in rows[-1]
    small = sum(len(script) for script in page.data if '"rows"' in script)
    assert small < 60 * len(trials), "bytes a trial"


def test_trials_may_lack_keys_or_have_others(report):
    page = report(
        [{"result": "wrong", "surprise": {"a": 1}}, {}, trial("unheard of", tokens=1234, seconds="?")]
    )
    assert "3 trials: " in page.text and "1 unheard of" in page.text and "1 –" in page.text
    assert sorted(map(len, table(page))) == [7] * 3 and any("1,234" in row for row in table(page))


def test_a_batch_that_has_not_ended_says_how_far_it_has_come(report):
    progress = {"ended": 1234, "planned": 5000, "at": "2026-11-30T12:00:00+00:00"}
    provenance = {"command": "loopkit batch <x>.yaml"}
    running = report(progress=progress | {"state": "running"}, provenance=provenance).text
    assert "This batch is still running." in running and "1,234 of 5,000 trials" in " ".join(running.split())
    stopped = report(progress=progress | {"state": "interrupted"}, provenance=provenance).text
    assert "This batch was interrupted." in stopped and stopped.count("loopkit batch <x>.yaml") == 2
    assert stopped.index("was interrupted") < stopped.index("Claims")
    assert "running" not in report().text and "interrupted" not in report().text


def test_damaged_records_are_named_at_the_top(report):
    text = report(damaged=[f"r{n}.jsonl, line 2 was changed" for n in range(1200)]).text
    assert "1200 records are damaged." in text.replace(",", "") and "r9.jsonl" in text
    assert "r10.jsonl" not in text and "and 1,190 more" in text
    assert text.index("records are damaged") < text.index("Claims")


def test_thousands_that_could_not_run_take_one_line_for_each_reason(report):
    errors = [trial("error", f"kk-{n}", kind="ConnectError", detail="refused") for n in range(2000)]
    text = report([*errors, trial("error", "other", kind="OSError", detail="full")]).text
    assert "2,001 trials could not run." in text and "2,000 × (run-kk-0, " in text
    assert "and 1,990 more" in text and "run-kk-1999" not in text
    assert text.index("ConnectError") < text.index("OSError"), "the most common reason first"


def test_groups_are_drawn_by_whatever_splits_them(report):
    groups = [row(arm, split=split) for arm in ("clauses", "reasoning") for split in ("seen", "unseen")]
    text = report(groups=groups).text
    assert "Accuracy by split" in text and "Accuracy by people" not in text
    assert "Accuracy by split" not in report(groups=[row(split="seen")]).text, "nothing to compare"


def test_claims_about_simulated_models_are_labelled(report):
    one, both = ["simulated:random"], ["embedded", "simulated:random"]
    assert "· simulated · supported" in report(claims=[claim("supported", models=one)]).text
    assert "· simulated · supported" not in report(claims=[claim("supported", models=both)]).text
    assert "· simulated · supported" not in report(claims=[claim("supported", models=[])]).text


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
    assert [kind for kind, _ in page.scripts[-2:]] == ["text/plain", None]
    assert not any("title='owned'" in script for kind, script in page.scripts if kind is None)
    assert not any("<" in script for script in page.data)
    assert not any(tag == "img" or name.startswith("on") for tag, attrs in page.tags for name in attrs)
    assert page.text.count("document.title='owned'") > 10
    assert sum(cell == HOSTILE for row in table(page) for cell in row) >= 4


def test_nothing_is_loaded_and_only_its_own_scripts_may_run(report):
    page = report([trial()], [example()])
    names = {name for _, attrs in page.tags for name in attrs}
    assert not names & {"src", "href", "srcset", "action", "data", "poster", "style"}
    [policy] = [
        attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy
    own = [script for kind, script in page.scripts if kind != "application/json"]
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


@pytest.fixture
def browser():
    """Opens a page in Chromium, offline; at the end nothing may have been complained about, or asked of the network."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on the PATH")
    complaints, asked, opened = [], [], []
    with sync_api.sync_playwright() as play:
        arguments = ["--headless", "--no-sandbox", "--disable-background-networking"]
        browser = play.chromium.launch(executable_path=chromium, args=arguments)

        def open_page(path, **context):
            page = browser.new_context(offline=True, **context).new_page()
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("request", lambda request: asked.append(request.url))
            opened.append(path.as_uri())
            page.goto(path.as_uri())
            return page, sync_api.expect

        yield open_page
        browser.close()
    assert complaints == []
    assert asked == opened


@pytest.mark.browser
def test_in_a_browser_without_network(tmp_path, browser):
    trials = [trial("wrong", "kk-1"), trial("failed", "kk-2", detail=HOSTILE), trial("correct", "kk-3")]
    path = write_report(tmp_path / "report.html", summary(), trials, examples=[example(HOSTILE)])
    page, expect = browser(path, viewport={"width": 400, "height": 800})
    expect(page.locator(".plot > .js-plotly-plot, .plot.js-plotly-plot")).to_have_count(3)
    expect(page.locator(".plot .main-svg .scatterlayer").first).to_be_visible()
    expect(page.get_by_text("✗ contradicted")).to_be_visible()
    assert page.title() == "Knights"
    assert page.evaluate("document.documentElement.scrollWidth") == 400, "the page scrolls sideways"

    assert page.locator("#trials tbody tr").count() == 0
    page.locator("#trials > summary").click()
    rows = page.locator("#trials tbody tr:visible")
    expect(rows).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth") == 400, "the page scrolls sideways"
    shown = rows.nth(1).locator("td").all_text_contents()
    assert HOSTILE.replace("\ud800", "�") in shown or HOSTILE in shown, "text stays text"
    page.locator("#filter").fill("CLAUSES wrong")
    expect(rows).to_have_count(1)
    expect(page.locator("#count")).to_have_text("1 of 3")
    page.locator("#filter").fill("")
    expect(rows).to_have_count(3)


@pytest.mark.browser
def test_thousands_of_trials_are_chosen_and_turned_over_in_a_browser(tmp_path, browser):
    results = ["correct"] * 9 + ["wrong"]
    trials = [
        trial(results[n % 10], f"kk-{n}", arm="clauses" if n % 2 else "reasoning", people=2 + n % 3)
        for n in range(5000)
    ]
    path = write_report(tmp_path / "report.html", summary(), trials)
    page, expect = browser(path)
    page.locator("#trials > summary").click()
    rows, count, where = page.locator("#trials tbody tr"), page.locator("#count"), page.locator("#page")
    expect(rows).to_have_count(100)
    expect(count).to_have_text("5,000 of 5,000")
    expect(where).to_have_text("1 – 100")
    expect(page.locator("#back")).to_be_disabled()
    page.locator("#on").click()
    expect(where).to_have_text("101 – 200")

    page.get_by_label("Arm").select_option("clauses")
    page.get_by_label("Result").select_option("✗ wrong")
    expected = sum(t["arm"] == "clauses" and t["result"] == "wrong" for t in trials)
    expect(count).to_have_text(f"{expected} of 5,000")
    assert expected > 100
    for _ in range((expected - 1) // 100):
        page.locator("#on").click()
    expect(page.locator("#on")).to_be_disabled()
    expect(rows).to_have_count(expected % 100 or 100)

    page.locator("#filter").fill("kk-19 ")
    expect(rows).to_have_count(
        sum("kk-19" in t["item"] and t["arm"] == "clauses" and t["result"] == "wrong" for t in trials)
    )
    expect(page.locator("#pages")).to_be_hidden()
    page.locator("#filter").fill("no such item")
    expect(rows).to_have_count(0)
    expect(count).to_have_text("0 of 5,000")
