"""The report of a batch: one HTML file that opens from disk, asks the network for nothing, and prints.

What is aggregated comes first; the trials lie in the page as compact data, and its script makes a table of them when
somebody asks for it. plotly lies there as text, and runs once the page can be read. So a batch of thousands opens as
fast as a small one, and both at once.

Much of what it shows was written by a model, so text enters the page through `_esc` or `_inert` only. Should that ever
fail, the page's content security policy names the hashes of its own two scripts, and no other script runs.
"""

import html
import json
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

from loopkit.batch.claims import simulated
from loopkit.batch.claims.wording import number
from loopkit.store import Run
from loopkit.views.comparison import PAIRED, pairs_figure, pairs_info
from loopkit.views.figures import arms_figure, convergence_figure, items_figure, items_info, model_label
from loopkit.views.trials import RESULTS, shown, title, trials_info

Row = Mapping[str, Any]
NAMED = 10
"""Of a long list of problems, or of runs with the same one, as many are named; the records hold them all."""
VERDICTS = {"supported": ("✓", "yes"), "not supported": ("○", "open"), "contradicted": ("✗", "no")}
MEANS = ("measure", "n", "mean", "95% interval")
ARMS = ("n", "correct", "wrong", "failed", "accuracy", "95% interval", "could not run", "tokens", "seconds")
FORMATS = dict.fromkeys(ARMS, ",") | {
    "95% interval": "",
    "accuracy": ".1%",
    "seconds": ",.1f",
    "mean": ",.4g",
}


def write_report(
    path: str | Path, summary: Row, trials: Sequence[Row], *, examples: Sequence[Run] = ()
) -> Path:
    """Write the report of a batch to `path`, whole or not at all, and return the path.

    `summary` is the content of `summary.json`, `trials` has a row per trial, and the convergence of each of
    the `examples` is drawn. Of a batch that has not ended, the summary's `progress` says how far it has come (`state`,
    `running` or `interrupted`; `ended` of `planned` trials; `at`, when); `damaged` lists what is wrong with records
    that cannot be believed. Missing folders are made. Raises KeyError when the summary lacks a part, and OSError when
    the file cannot be written.
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
        _unfinished(summary.get("progress"), summary["provenance"]),
        _damaged(summary.get("damaged", ())),
        _could_not_run(rows, trials, summary.get("problems", ())),
        SIMULATED if any(row["model"].startswith("simulated:") for row in rows) else "",
        _section("Claims", *map(_claim, summary["claims"])),
        _section(
            "Arms", _table((*_who(rows), *ARMS), map(_arm, rows)), _figure(arms_figure(rows), INTERVALS)
        ),
        _measures(rows),
        _pairs(trials),
        *(_groups(groups, key) for key in _split_by(rows, groups)),
        _failures(rows),
        _section("Convergence", *map(_run, examples)),
        _trials(trials),
        _section("Provenance", f"<dl>{''.join(origins)}</dl>"),
    ]
    plotly, script = get_plotlyjs(), _file("report.js")
    digests = (b64encode(sha256(js.encode()).digest()).decode() for js in (plotly, script))
    return PAGE.format(
        allowed=" ".join(f"'sha256-{digest}'" for digest in digests),
        title=_esc(summary["batch"]),
        css=_file("report.css"),
        body="\n".join(body),
        plotly=plotly,
        script=script,
    )


def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _unfinished(progress: Row | None, provenance: Row) -> str:
    """A box that says how far the batch had come when this was written; nothing when it had ended."""
    if progress is None:
        return ""
    if progress["state"] == "running":
        look, head = "running", "This batch is still running."
        then = "<code>loopkit report</code> with its folder writes this page again."
    else:
        look, head = "errors", "This batch was interrupted."
        then = f"The same command goes on with it: <code>{_esc(provenance['command'])}</code>"
    return f"""<aside class="{look}"><strong>{head}</strong> {progress["ended"]:,} of {progress["planned"]:,} trials
        had ended at {_esc(progress["at"])}; all numbers and verdicts below are of those. {then}</aside>"""


def _damaged(problems: Sequence[str]) -> str:
    """A box with the records that cannot be believed; nothing when all can."""
    if not problems:
        return ""
    words = "1 record is damaged" if len(problems) == 1 else f"{len(problems):,} records are damaged"
    return f"""<aside class="errors"><strong>{words}.</strong> What they held counts nowhere
        below.{_list(problems)}</aside>"""


def _list(lines: Sequence[str]) -> str:
    """The first lines as a list, and how many more there are."""
    more = len(lines) - NAMED
    items = [*map(_esc, lines[:NAMED]), *([f"and {more:,} more"] if more > 0 else [])]
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


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
    often = sorted(reasons.items(), key=lambda item: -len(item[1]))
    words = "1 trial" if count == 1 else f"{count:,} trials"
    return f"""<aside class="errors"><strong>{words} could not run.</strong> What did not run says nothing
        about a model and is not part of any n below.{_list([_reason(*item) for item in often])}</aside>"""


def _reason(reason: str, runs: Sequence[str]) -> str:
    more = f", and {len(runs) - NAMED:,} more" if len(runs) > NAMED else ""
    return f"{reason} – {len(runs):,} × ({', '.join(runs[:NAMED])}{more})"


def _incomplete(problems: Sequence[str]) -> str:
    """A box with the notebooks that did not come to their end; nothing when all did."""
    if not problems:
        return ""
    return f"""<aside class="errors"><strong>This batch is not complete.</strong>{_list(problems)}</aside>"""


def _claim(claim: Row) -> str:
    mark, kind = VERDICTS.get(claim["verdict"], ("?", "open"))
    numbers = [] if claim["effect"] is None else [f"effect {claim['effect']:+.3g}"]
    if (p := claim["p"]) is not None:
        corrected = claim.get("p_holm", p)  # earlier summaries have none
        numbers.append(_p(p) if corrected == p else f"{_p(p)}, by Holm {_p(corrected)}")
    match claim.get("simulated") or simulated(
        claim.get("models", [])
    ):  # earlier summaries have the models only
        case "all":
            numbers.append("simulated")
        case "some":
            numbers.append("partly simulated")
    if declared := claim.get("declared"):
        numbers.append(f"declared {declared[:16].replace('T', ' ')} as {claim['digest'][:12]}")
    late = " <span>post hoc</span>" if claim.get("post_hoc") else ""
    return f"""<article class="claim {kind}"><p class="badge">{mark} {_esc(claim["verdict"])}{late}</p>
        <div><p class="says">{_esc(claim["says"])}</p><p>{_esc(claim["explained"])}</p>
        <p class="numbers">{_esc(" · ".join([*numbers, claim["id"]]))}</p></div></article>"""


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


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


def _measures(rows: Sequence[Row]) -> str:
    """The means of what trials recorded beside their result; nothing where none did."""
    told = [
        {**row, "model": model_label(row["model"]), "measure": name, **got, "95% interval": _interval(got)}
        for row in rows
        for name, got in row.get("measures", {}).items()
    ]
    return _section("Measures", _table((*_who(rows), *MEANS), told)) if told else ""


def _interval(got: Row) -> str | None:
    return None if got["low"] is None else f"{number(got['low'])} – {number(got['high'])}"


def _split_by(rows: Sequence[Row], groups: Sequence[Row]) -> list[str]:
    """The parameters by which the batch file has its groups split."""
    return [key for key in groups[0] if key not in rows[0]] if rows and groups else []


def _pairs(trials: Sequence[Row]) -> str:
    """Each two arms on the same items; nothing where no two tried the same."""
    pairs = pairs_info([row for row in trials if row.get("result") and {"arm", "model"} <= row.keys()])
    if not any(pair.paired for pair in pairs):
        return ""
    return _section("The same items", _figure(pairs_figure(pairs), PAIRED))


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
    counts = Counter(shown(RESULTS.get(trial.get("result"), trial.get("result"))) for trial in trials)
    known = [result for result in RESULTS.values() if result in counts]
    others = [result for result in counts if result not in known]
    words = [f"{counts[result]:,} {result}" for result in (*others, *known)]
    data = _inert(json.dumps(trials_info(trials), ensure_ascii=False, separators=(",", ":")))
    return _section(
        "Trials", TRIALS.format(count=f"{len(trials):,}", words=_esc(", ".join(words)), data=data)
    )


def _section(title: str, *parts: str) -> str:
    """A headed section; nothing when it has no parts. Parts are HTML."""
    return f"<section><h2>{_esc(title)}</h2>{''.join(parts)}</section>" if parts else ""


def _table(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """The keys `columns` of each row, escaped; what is missing is a dash."""
    looks = [" class='num'" if key in FORMATS or key.startswith("failed: ") else "" for key in columns]
    head = "".join(f"<th{look}>{_esc(title(key))}</th>" for look, key in zip(looks, columns, strict=True))
    lines = []
    for row in rows:
        cells = [shown(row.get(key), FORMATS.get(key, "")) for key in columns]
        wraps = [" class='long'" if len(cell) > 40 else look for look, cell in zip(looks, cells, strict=True)]
        lines.append("".join(f"<td{look}>{_esc(cell)}</td>" for look, cell in zip(wraps, cells, strict=True)))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _figure(figure: go.Figure, caption: str) -> str:
    data = _inert(str(figure.to_json(engine="json")))
    plot = f"<div class='plot'></div><script type='application/json'>{data}</script>"
    return f"<figure>{plot}<figcaption>{_esc(caption)}</figcaption></figure>"


def _inert(data: str) -> str:
    """JSON that cannot end the script element it stands in."""
    return data.replace("<", "\\u003c")


def _esc(value: object) -> str:
    return html.escape(str(value))


INTERVALS = (
    "Accuracy with 95% Wilson intervals, by item where seeds repeat one; open symbols are simulated models."
)
SIMULATED = """<aside class="simulated"><strong>Simulated.</strong> Some results come from simulated models,
labelled (simulated). They show how the experiment behaves, not what a language model can do.</aside>"""

TRIALS = """<details id="trials"><summary>{count} trials: {words}</summary>
<p class="tools"><span id="choices"></span><label>Filter <input type="search" id="filter" placeholder="item, kind, words"></label>
<output id="count" for="filter"></output></p>
<div class="wide"><table><thead></thead><tbody></tbody></table></div>
<p class="tools" id="pages"><button type="button" id="back">← before</button> <output id="page"></output>
<button type="button" id="on">after →</button></p>
</details><script type="application/json" id="trials-data">{data}</script>"""

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
<script type="text/plain" id="plotly">{plotly}</script>
<script>{script}</script>
</body>
</html>
"""
