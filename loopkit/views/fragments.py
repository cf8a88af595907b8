"""Pieces of HTML for widgets. Models wrote much of what they show, so text enters them through `text` only."""

import html
from collections.abc import Iterable, Mapping, Sequence

from loopkit.store import Run
from loopkit.usage import Usage
from loopkit.views.doors import Door
from loopkit.views.figures import model_label
from loopkit.views.trace import EventRow, Piece, TurnRecord

SHOWN = 6_000
"""Characters of one text that are shown."""
EVENTS = 200
"""Events of one iteration, and lines of a log, that are shown."""

STYLE = """<style>
.loopkit { font: 13px/1.5 var(--jp-ui-font-family, system-ui, sans-serif); color: var(--jp-ui-font-color1, inherit);
  overflow-wrap: anywhere }
.loopkit h4 { margin: .8em 0 .2em; font-size: 13px; font-weight: 600 }
.loopkit p, .loopkit ul { margin: .2em 0 } .loopkit ul { padding: 0; list-style: none }
.loopkit pre { margin: 0; padding: .4em .6em; max-height: 22em; overflow: auto; white-space: pre-wrap;
  border-left: 3px solid rgba(128,128,128,.4); background: none; color: inherit;
  font: 12px/1.5 var(--jp-code-font-family, monospace) }
.loopkit ins { text-decoration: underline; background: rgba(0,158,115,.22) }
.loopkit del { text-decoration: line-through; background: rgba(213,94,0,.22) }
.loopkit small { opacity: .8 }
.loopkit table { border-collapse: collapse } .loopkit th { font-weight: 600 }
.loopkit th, .loopkit td { padding: .1em .9em .1em 0; text-align: left; vertical-align: top }
.loopkit td.num { text-align: right; font-variant-numeric: tabular-nums }
.loopkit .columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(20em, 1fr)); gap: 0 2em }
.loopkit .warns { border-left: 4px solid #D55E00; padding-left: .6em }
.loopkit meter, .loopkit progress { width: 9em; vertical-align: middle }
</style>"""


def page(*parts: str) -> str:
    """Parts of HTML as one widget shows them."""
    return f"{STYLE}<div class='loopkit'>{''.join(parts)}</div>"


def text(value: object, limit: int = SHOWN) -> str:
    """`value` as HTML that says the very same; what is longer than `limit` characters is cut, and the cut told."""
    whole = str(value)
    shown = html.escape(whole[:limit].encode("utf-8", "backslashreplace").decode())
    cut = len(whole) - limit
    return shown if cut <= 0 else f"{shown}<small> … {cut:,} more characters are in the log</small>"


def warning(said: str) -> str:
    """A problem, told where people look; nothing when there is none."""
    return f"<p class='warns' role='alert'>{text(said)}</p>" if said else ""


def facts_html(run: Run) -> str:
    """What is always asked of a run: its model, status, gate, iterations, tokens, calls, cost, time."""
    turns, stop = run.all("iteration"), run.stop
    model, parent = run.params.get("model"), (run.first("start") or {}).get("parent")
    said = {
        "status": run.status,
        "model": model_label(str(model)) if model else "",
        "forked from": f"{parent['run']}, after iteration {parent['at']}" if parent else "",
        "stopped by": f"{stop['gate']}: {stop['reason']}" if stop else "",
        "iterations": str(len(turns)),
        "spent": spent(run.usage, sum(turn.get("seconds") or 0.0 for turn in turns)),
    }
    rows = "".join(f"<tr><th>{name}</th><td>{text(one, 400)}</td></tr>" for name, one in said.items() if one)
    return f"<h4>{text(run.id)}</h4><table>{rows}</table>"


def spent(usage: Usage, seconds: float) -> str:
    """Tokens, calls, dollars and seconds in words."""
    cost = f"${usage.cost:.4f}"
    if usage.unpriced_calls:
        cost = f"at least {cost} ({usage.unpriced_calls} calls have no known price)"
    calls = "1 call" if usage.calls == 1 else f"{usage.calls:,} calls"
    return f"{usage.tokens:,} tokens in {calls}, {cost}, {seconds:,.2f} s in the phases"


def turn_html(turn: TurnRecord) -> str:
    """One iteration: candidate, its difference from the best before, verdict, checklist, what it spent, events."""
    head = f"visit {turn.iteration}: {turn.step}" if turn.step else f"iteration {turn.iteration}"
    decided = turn.decision or "goes on"
    score = "" if turn.score is None else f", score {turn.score:g}"
    left = [_block("output" if turn.step else "candidate", turn.candidate)]
    if turn.before is not None and turn.candidate:
        where = (
            f"the visit before ({turn.before})" if turn.step else f"the best before (iteration {turn.before})"
        )
        left.append(f"<h4>difference from {where}</h4>{difference_html(turn.difference)}")
    right = [_block("observation", turn.observation), _verdict(turn), _checklist(turn)]
    return (
        f"<h4>{text(head, 200)}: {text(decided)}{score}</h4>"
        f"{f'<p>{text(turn.note)}</p>' if turn.note else ''}"
        f"<p><small>{text(spent(turn.usage, turn.seconds))}</small></p>"
        f"<div class='columns'><div>{''.join(left)}</div><div>{''.join(right)}</div></div>"
        f"{_events(turn.events)}"
    )


def _block(title: str, said: str) -> str:
    return f"<h4>{title}</h4><pre>{text(said)}</pre>" if said else ""


def difference_html(pieces: Iterable[Piece]) -> str:
    """A text with what is new underlined and what is gone struck through; of long parts that stayed, the ends."""
    pieces = list(pieces)
    if all(piece.kind == "same" for piece in pieces):
        return "<p>none</p>"
    marks = {"gone": "del", "new": "ins"}
    shown = [
        f"<{marks[kind]}>{text(said)}</{marks[kind]}>" if kind in marks else _unchanged(said)
        for kind, said in pieces
    ]
    return f"<pre>{''.join(shown)}</pre>"


def _unchanged(said: str) -> str:
    if len(said) <= 400:
        return text(said)
    return (
        f"{text(said[:150])}<small> … {len(said) - 300:,} characters the same … </small>{text(said[-150:])}"
    )


def _verdict(turn: TurnRecord) -> str:
    if not turn.dimensions:
        return ""
    rows = (
        f"<tr><th>{text(one.name, 200)}</th><td class='num'>{'' if one.score is None else f'{one.score:g}'}</td>"
        f"<td>{text(one.evidence, 1_000)}</td></tr>"
        for one in turn.dimensions
    )
    return f"<h4>verdict by dimension, with its evidence</h4><table>{''.join(rows)}</table>"


def _checklist(turn: TurnRecord) -> str:
    lines = [f"☐ <b>blocking</b> {text(one, 1_000)}" for one in turn.blocking]
    lines += [f"☐ suggested {text(one, 1_000)}" for one in turn.suggestions]
    lines += [f"☑ settled {text(one, 1_000)}" for one in turn.settled]
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f"<h4>asked for</h4><ul>{items}</ul>" if items else ""


def _events(rows: Sequence[EventRow]) -> str:
    lines = (
        f"<tr><td class='num'>{'' if row.seq is None else row.seq}</td><td>{text(row.time[11:23])}</td>"
        f"<td>{text(row.event, 80)} {text(row.where, 80)}</td>"
        f"<td class='num'>{'' if row.seconds is None else f'{row.seconds:.3f} s'}</td>"
        f"<td class='num'>{f'{row.tokens:,} tokens' if row.tokens else ''}</td><td>{text(row.said, 300)}</td></tr>"
        for row in rows[:EVENTS]
    )
    left = f"<p>{len(rows) - EVENTS:,} more are in the log.</p>" if len(rows) > EVENTS else ""
    return f"<details><summary>{len(rows)} events</summary><table>{''.join(lines)}</table>{left}</details>"


def log_html(run: Run, around: int) -> str:
    """The lines of a run's log from iteration `around` on, and where the file is."""
    first = next((at for at, one in enumerate(run.events) if one.get("iteration") == around), 0)
    lines = [f"{text(one, 400)}\n" for one in run.events[first : first + EVENTS]]
    rest = len(run.events) - first - len(lines)
    left = f"<p>{rest:,} more follow.</p>" if rest > 0 else ""
    where = f"<p><code>{text(run.path)}</code>, from line {first + 1}:</p>" if run.path else ""
    return f"{where}<pre>{''.join(lines)}</pre>{left}"


def doors_html(doors: Sequence[Door]) -> str:
    """Each gate with a gauge of how near it is."""
    rows = []
    for door in doors:
        said = text(door.reason, 300) if door.reason is not None else "closed"
        if door.reason is None and door.nearness is not None:
            said = f"{door.nearness:.0%} of the way"
        gauge = (
            "" if door.nearness is None else f"<meter min='0' max='1' value='{door.nearness:.3f}'></meter>"
        )
        state = "<b>open</b>: " if door.reason is not None else ""
        rows.append(f"<tr><th>{text(door.gate, 120)}</th><td>{gauge}</td><td>{state}{said}</td></tr>")
    return f"<h4>doors</h4><table>{''.join(rows)}</table>"


def progress_html(done: int, most: int | None) -> str:
    """A bar of the turns that are done, of those there are at most; one without an end where nobody counts them."""
    limits = "" if most is None else f" value='{min(done, most)}' max='{most}'"
    said = f"turn {done}" if most is None else f"turn {done} of at most {most}"
    return f"<p><progress aria-label='turns done'{limits}></progress> {said}</p>"


def table_html(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """The keys `columns` of each row; numbers to the right, a dash where there is nothing."""
    head = "".join(f"<th>{text(name, 80)}</th>" for name in columns)
    lines = ("".join(_cell(row.get(name)) for name in columns) for row in rows)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _cell(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        spec = "," if isinstance(value, int) else ",.0f" if abs(value) >= 100 else ".3g"
        return f"<td class='num'>{value:{spec}}</td>"
    return f"<td>{'–' if value is None else text(value, 200)}</td>"
