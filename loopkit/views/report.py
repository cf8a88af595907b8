"""The report of a batch: one HTML file that opens from disk, asks the network for nothing, and prints.

Much of what it shows was written by a model, so text enters the page through `_esc` only. Should that ever
fail, the page's content security policy names the hashes of its own two scripts, and no other script runs.
"""

import html
import os
import tempfile
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from loopkit.store import Run
from loopkit.views.figures import arms_figure, convergence_figure, items_figure, items_info, model_label

Row = Mapping[str, Any]
SHOWN = 500
"""Trials listed at most; the records hold them all."""
VERDICTS = {"supported": ("✓", "yes"), "not supported": ("○", "open"), "contradicted": ("✗", "no")}
RESULTS = {"wrong": "✗ wrong", "failed": "! failed", "error": "⊘ could not run", "correct": "✓ correct"}
ARMS = ("n", "correct", "wrong", "failed", "accuracy", "95% interval", "could not run", "tokens", "seconds")
TRIALS = ("result", "kind", "detail", "arm", "model", "item", "people", "perturb", "seed", "iterations")
TRIALS += ("stopped_by", "tokens", "seconds", "run")
FORMATS = dict.fromkeys((*ARMS, "iterations"), ",") | {"people": "", "seed": "", "95% interval": ""}
FORMATS |= {"accuracy": ".1%", "seconds": ",.1f"}


def write_report(
    path: str | Path, summary: Row, trials: Sequence[Row], *, examples: Sequence[Run] = ()
) -> Path:
    """Write the report of a batch to `path`, whole or not at all, and return the path.

    `summary` is the content of `summary.json`, `trials` has a row per trial, and the convergence of each of
    the `examples` is drawn. Missing folders are made. Raises KeyError when the summary lacks a part, and
    OSError when the file cannot be written.
    """
    path = Path(path)
    page = _page(summary, trials, examples).encode("utf-8", "backslashreplace")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".report-") as folder:
        whole = Path(folder, path.name)
        whole.write_bytes(page)
        os.replace(whole, path)
    return path


def _page(summary: Row, trials: Sequence[Row], examples: Sequence[Run]) -> str:
    rows, groups = summary["rows"], summary["groups"]
    origins = (f"<dt>{_esc(k)}</dt><dd><code>{_esc(v)}</code></dd>" for k, v in summary["provenance"].items())
    body = [
        f"<h1>{_esc(summary['batch'])}</h1><p class='question'>{_esc(summary['question'])}</p>",
        _could_not_run(rows, trials, summary.get("problems", ())),
        SIMULATED if any(row["model"].startswith("simulated:") for row in rows) else "",
        _section("Claims", *map(_claim, summary["claims"])),
        _section(
            "Arms", _table((*_who(rows), *ARMS), map(_arm, rows)), _figure(arms_figure(rows), INTERVALS)
        ),
        *(_groups(groups, key) for key in ("people", "perturb")),
        _failures(rows),
        _section("Convergence", *map(_run, examples)),
        _trials(trials),
        _section("Provenance", f"<dl>{''.join(origins)}</dl>"),
    ]
    plotly_js = get_plotlyjs()
    digests = (b64encode(sha256(js.encode()).digest()).decode() for js in (plotly_js, JS))
    return PAGE.format(
        allowed=" ".join(f"'sha256-{digest}'" for digest in digests),
        title=_esc(summary["batch"]),
        css=CSS,
        body="\n".join(body),
        scripts=f"<script>{plotly_js}</script><script>{JS}</script>",
    )


def _could_not_run(rows: Sequence[Row], trials: Sequence[Row], problems: Sequence[str]) -> str:
    """A box with every reason for which trials could not run, and the runs it hit; nothing when all ran."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for trial in trials:
        if trial.get("result") == "error":
            words = [str(trial[key]) for key in ("kind", "detail") if trial.get(key)]
            reasons[": ".join(words) or "no reason recorded"].append(str(trial.get("run")))
    count = max(sum(row["errors"] for row in rows), sum(map(len, reasons.values())))
    if not count:
        return _incomplete(problems)
    items = (
        f"<li>{_esc(reason)} <small>{len(runs)} × ({_esc(', '.join(runs))})</small></li>"
        for reason, runs in reasons.items()
    )
    words = "1 trial" if count == 1 else f"{count} trials"
    return f"""<aside class="errors"><strong>{words} could not run.</strong> What did not run says nothing
        about a model and is not part of any n below.<ul>{"".join(items)}</ul></aside>"""


def _incomplete(problems: Sequence[str]) -> str:
    """A box with the notebooks that did not come to their end; nothing when all did."""
    if not problems:
        return ""
    items = "".join(f"<li>{_esc(problem)}</li>" for problem in problems)
    return f"""<aside class="errors"><strong>This batch is not complete.</strong><ul>{items}</ul></aside>"""


def _claim(claim: Row) -> str:
    mark, kind = VERDICTS.get(claim["verdict"], ("?", "open"))
    numbers = [] if claim["effect"] is None else [f"effect {claim['effect']:+.3g}"]
    if (p := claim["p"]) is not None:
        numbers.append("p < 0.001" if p < 0.001 else f"p = {p:.3f}")
    return f"""<article class="claim {kind}"><p class="badge">{mark} {_esc(claim["verdict"])}</p>
        <div><p class="says">{_esc(claim["says"])}</p><p>{_esc(claim["explained"])}</p>
        <p class="numbers">{_esc(" · ".join([*numbers, claim["id"]]))}</p></div></article>"""


def _who(rows: Sequence[Row]) -> list[str]:
    """The columns that name a row; the experiment only where there are several."""
    several = len({row.get("experiment") for row in rows}) > 1
    return ["experiment", "arm", "model"] if several else ["arm", "model"]


def _arm(row: Row) -> dict[str, Any]:
    """The row with what the tables derive from it."""
    low, high, failed = row["wilson_low"], row["wilson_high"], sum(row["failures"].values())
    interval = None if low is None else f"{low:.1%} – {high:.1%}"
    derived = {"95% interval": interval, "failed": failed, "could not run": row["errors"]}
    return {**row, **derived, "model": model_label(row["model"])}


def _groups(groups: Sequence[Row], key: str) -> str:
    """Accuracy by one key; nothing when it has a single value."""
    if len({share.value for share in items_info(groups, by=key)}) < 2:
        return ""
    caption = f"{INTERVALS} Pooled over everything but arm, model and {key}."
    return _section(f"Accuracy by {key}", _figure(items_figure(groups, by=key), caption))


def _failures(rows: Sequence[Row]) -> str:
    """Wrong answers, failures by kind, and what could not run, each in columns of its own."""
    kinds = sorted({kind for row in rows for kind in row["failures"]})
    counted = [
        _arm(row) | {f"failed: {kind}": row["failures"].get(kind, 0) for kind in kinds} for row in rows
    ]
    columns = (*_who(rows), "wrong", *(f"failed: {kind}" for kind in kinds), "could not run")
    note = "<p>A failure ended without a usable answer: it counts in n, but is not a wrong answer.</p>"
    return _section("Failures by kind", note, _table(columns, counted))


def _run(run: Run) -> str:
    model = run.params.get("model")
    caption = f"Run {run.id}, {model_label(str(model))}." if model else f"Run {run.id}."
    return _figure(convergence_figure(run), caption)


def _trials(trials: Sequence[Row]) -> str:
    order = {result: rank for rank, result in enumerate(RESULTS)}
    ordered = sorted(trials, key=lambda trial: order.get(trial.get("result"), -1))
    shown = [{**trial, "result": RESULTS.get(trial.get("result"), trial.get("result"))} for trial in ordered]
    counts = Counter(str(trial["result"]) for trial in shown)
    words = ", ".join(f"{count} {result}" for result, count in counts.items())
    left = f"The first {SHOWN} are listed. " if len(trials) > SHOWN else ""
    return _section(
        "Trials",
        f"""<details id="trials"><summary>{len(trials)} trials: {_esc(words)}</summary>
        <p>{left}<label>Filter <input type="search" id="filter" placeholder="wrong reasoning"></label>
        <output id="count" for="filter"></output></p>""",
        _table(TRIALS, shown[:SHOWN]),
        "</details>",
    )


def _section(title: str, *parts: str) -> str:
    """A headed section; nothing when it has no parts. Parts are HTML."""
    return f"<section><h2>{_esc(title)}</h2>{''.join(parts)}</section>" if parts else ""


def _table(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """The keys `columns` of each row, escaped; what is missing is a dash."""
    looks = [" class='num'" if key in FORMATS or key.startswith("failed: ") else "" for key in columns]
    titles = [key if key == "n" else key[0].upper() + key[1:].replace("_", " ") for key in columns]
    head = "".join(f"<th{look}>{_esc(title)}</th>" for look, title in zip(looks, titles, strict=True))
    lines = []
    for row in rows:
        cells = [_cell(row.get(key), FORMATS.get(key, "")) for key in columns]
        wraps = [" class='long'" if len(cell) > 40 else look for look, cell in zip(looks, cells, strict=True)]
        lines.append("".join(f"<td{look}>{_esc(cell)}</td>" for look, cell in zip(wraps, cells, strict=True)))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _cell(value: Any, spec: str) -> str:
    text = format(value, spec) if isinstance(value, int | float) else "–" if value is None else str(value)
    return text if len(text) <= 300 else text[:299] + "…"


def _figure(figure: go.Figure, caption: str) -> str:
    data = str(figure.to_json(engine="json")).replace("<", "\\u003c")
    plot = f"<div class='plot'></div><script type='application/json'>{data}</script>"
    return f"<figure>{plot}<figcaption>{_esc(caption)}</figcaption></figure>"


def _esc(value: object) -> str:
    return html.escape(str(value))


INTERVALS = "Accuracy with 95% Wilson intervals; open symbols are simulated models."
SIMULATED = """<aside class="simulated"><strong>Simulated.</strong> Some results come from simulated models,
labelled (simulated). They show how the experiment behaves, not what a language model can do.</aside>"""

JS = """
for (const plot of document.querySelectorAll(".plot")) {
  const {data, layout} = JSON.parse(plot.nextElementSibling.textContent);
  Plotly.newPlot(plot, data, layout, {responsive: true, displayModeBar: false});
  addEventListener("beforeprint", () => Plotly.relayout(plot, {width: 660}));
  addEventListener("afterprint", () => Plotly.relayout(plot, {width: null, autosize: true}));
}
const filter = document.querySelector("#filter"), count = document.querySelector("#count");
const rows = [...document.querySelectorAll("#trials tbody tr")];
filter.addEventListener("input", () => {
  const words = filter.value.toLowerCase().split(/\\s+/);
  for (const row of rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
  count.value = `${rows.filter(row => !row.hidden).length} of ${rows.length}`;
});
"""

CSS = """
:root { color-scheme: light dark; --ink: #1c1c1a; --soft: #62625c; --rule: #dcdcd6; --page: #fdfdfb;
  --red: #b34700; --tint: #fbeee6; --text: Charter, "Iowan Old Style", Palatino, Georgia, serif;
  --data: system-ui, sans-serif }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e0; --soft: #a2a29a; --rule: #3a3a36; --page: #161614;
    --red: #f0884a; --tint: #2c1d13 } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 60rem; padding: 3rem 1.25rem 4rem; background: var(--page);
  color: var(--ink); font: 1.0625rem/1.55 var(--text); overflow-wrap: anywhere }
h1 { font-size: 2rem; line-height: 1.2; font-weight: 600; margin: 0 0 .5rem }
h2 { font-size: 1.25rem; font-weight: 600; margin: 3rem 0 1rem; padding-top: .75rem; break-after: avoid;
  border-top: 1px solid var(--rule) }
p { margin: 0 0 .6rem; max-width: 42rem }
.question { font-size: 1.25rem; font-style: italic; color: var(--soft) }
aside { margin: 1.5rem 0; padding: .8rem 1rem; border-left: 4px solid var(--soft); background: var(--rule) }
aside.simulated { background: none; border: 1px dashed var(--soft) }
aside.errors { border: 1px solid var(--red); border-left-width: 4px; background: var(--tint) }
aside ul { margin: .5rem 0 0; padding-left: 1.2rem }
.claim { display: grid; grid-template-columns: 9.5rem 1fr; gap: .5rem 1.5rem; margin: 0 0 1.5rem;
  break-inside: avoid }
.badge { justify-self: start; align-self: start; padding: .1rem .6rem; border: 1.5px solid;
  border-radius: 3px; font: 600 .85rem/1.5 var(--data); white-space: nowrap; print-color-adjust: exact }
.yes .badge { background: #00734f; border-color: #00734f; color: #fff }
.no .badge { background: #b34700; border-color: #b34700; color: #fff }
.open .badge { color: var(--soft) }
.says { font-weight: 600 }
.numbers, small, figcaption, summary, label, output { font: .85rem/1.5 var(--data); color: var(--soft) }
.wide { overflow-x: auto; margin: 0 0 1rem }
table { border-collapse: collapse; min-width: 100%; font: .85rem/1.4 var(--data);
  font-variant-numeric: tabular-nums; overflow-wrap: normal }
th, td { padding: .4rem .5rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule) }
th:first-child, td:first-child { padding-left: 0 }
td { white-space: nowrap }
.long { white-space: normal; min-width: 20rem }
th { border-bottom: 1.5px solid var(--ink); font-weight: 600; vertical-align: bottom }
.num { text-align: right }
figure { margin: 1rem 0; break-inside: avoid }
figcaption { margin-top: .25rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.5rem; font-size: .9rem }
dd { margin: 0 } code { font-size: .85rem; white-space: pre-wrap }
summary { cursor: pointer; margin-bottom: 1rem }
input { font: inherit; padding: .3rem .5rem; width: 14rem; max-width: 100%; border: 1px solid var(--soft);
  border-radius: 3px; background: none; color: var(--ink) }
@media (max-width: 40rem) { body { padding-top: 1.5rem } .claim, dl { grid-template-columns: 1fr; gap: 0 }
  dd { margin-bottom: .6rem } }
@media print { :root { color-scheme: light } body { max-width: none; padding: 0; font-size: 10pt }
  .wide { overflow: visible } table { font-size: 7pt } td { white-space: normal }
  th, td { padding: .2rem .3rem } .long { min-width: 0 } h2 { margin-top: 1.5rem } }
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src {allowed};
  style-src 'unsafe-inline'; img-src data: blob:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
{body}
{scripts}
</body>
</html>
"""
