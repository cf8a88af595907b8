"""What is known of each iteration of a run, as plain records: what people look at, before it is drawn.

A run of a loop has candidates and verdicts. A run of a flow has steps and their outputs, and is looked at alike:
the output of a visit stands in the place of the candidate, the visit before of the same step in that of the best.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from loopkit.history import Decision, Iteration
from loopkit.log import decode, encode
from loopkit.loop import Outcome
from loopkit.store import Run, Store
from loopkit.usage import Usage

Event = Mapping[str, Any]
Source = Outcome | Run | str | Path
COMPARED = 20_000
"""Characters of a text that are compared with another one."""


class Piece(NamedTuple):
    """A part of a text, and what became of it."""

    kind: Literal["same", "gone", "new"]
    text: str


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """One dimension of a verdict, and what its score rests on."""

    name: str
    score: float | None
    """None where the judge gave evidence only, or its score is void."""
    evidence: str
    """Of a void score, why it is."""


@dataclass(frozen=True, kw_only=True)
class EventRow:
    """One event, in words."""

    seq: int | None
    time: str
    """UTC, ISO 8601; empty for what was never in a log."""
    event: str
    where: str
    """The phase, and which of several candidates."""
    seconds: float | None
    tokens: int
    said: str
    """What the event holds, cut to 300 characters."""


@dataclass(frozen=True, kw_only=True)
class TurnRecord:
    """All that is on record of one iteration."""

    iteration: int
    step: str | None
    """The step of a flow that was visited; None in a loop."""
    decision: str | None
    """None while it goes on."""
    score: float | None
    candidate: str
    observation: str
    before: int | None
    """The iteration that was the best before; None where nothing had been kept."""
    difference: tuple[Piece, ...]
    """Of the candidate from that one's."""
    dimensions: tuple[Dimension, ...]
    blocking: tuple[str, ...]
    suggestions: tuple[str, ...]
    settled: tuple[str, ...]
    """What the best before was asked for, and this candidate is not."""
    note: str
    """What failed, why it may not stop the loop, or in a flow which way was taken, in words."""
    usage: Usage
    seconds: float
    events: tuple[EventRow, ...]


def as_run(source: Source) -> Run:
    """`source` as a run: the log of that path (with or without `.jsonl`), or the record that an outcome would have.

    Raises StoreError when there is no such log or it was changed, TypeError for anything else.
    """
    match source:
        case Run():
            return source
        case Outcome():
            plain = [{key: decode(encode(one)) for key, one in event.items()} for event in _events(source)]
            return Run("outcome", plain)
        case str() | Path():
            folder, name = log_place(source)
            return Store(folder).run(name)
    raise TypeError(f"expected a Run, an Outcome or the path of a log, got {source!r:.200}")


def log_place(path: str | Path) -> tuple[Path, str]:
    """The folder and the run's id that a path names, with or without `.jsonl`."""
    path = Path(path).expanduser()
    return path.parent, path.name.removesuffix(".jsonl")


def as_event(turn: Iteration) -> dict[str, Any]:
    """The turn as `Loop` records it."""
    feedback = asdict(turn.verdict.feedback) if turn.verdict else None
    error = asdict(turn.error) if turn.error else None
    event = {"iteration": turn.number, "decision": turn.decision, "score": turn.score}
    return event | {"feedback": feedback, "error": error}


def _events(outcome: Outcome) -> Iterator[dict[str, Any]]:
    """What `Loop` would have recorded of a run that had no log."""
    yield {"event": "goal", "goal": outcome.goal, "gates": [repr(gate) for gate in outcome.gates]}
    best = None
    for turn in outcome.history:
        phases = {"propose": turn.candidate, "execute": turn.observation, "judge": turn.verdict}
        for phase, value in phases.items():
            if value is not None:
                yield {"event": "step", "iteration": turn.number, "phase": phase, "value": value}
        best = turn.number if turn.decision is Decision.KEEP else best
        spent = {"usage": turn.usage.spent(), "seconds": turn.seconds}
        yield {"event": "iteration", **as_event(turn), "best": best, **spent}
    yield {"event": "stop", **asdict(outcome.stopped_by), "best": best}


class Trace:
    """A run by iteration. Looking at one turn of a long run costs no more than of a short one."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._events: dict[int, list[Event]] = {}
        for event in run.events:
            if "iteration" in event:
                self._events.setdefault(event["iteration"], []).append(event)

    def __len__(self) -> int:
        """How many iterations were begun. They count from 1."""
        return max(self._events, default=0)

    def turn(self, number: int) -> TurnRecord:
        """What is known of an iteration. Raises IndexError when it was not begun."""
        if not 1 <= number <= len(self):
            raise IndexError(f"run {self.run.id!r} has {len(self)} iterations, there is no {number}")
        events, ended = self._of(number), self._ended(number)
        verdict, before = self._verdict(number), self._before(number)
        candidate, feedback = self._candidate(number), _feedback(ended, verdict)
        difference: tuple[Piece, ...] = ()
        settled: list[str] = []
        if before is not None and candidate:
            difference = tuple(find_difference(self._candidate(before), candidate))
            asked = _feedback(self._ended(before), self._verdict(before))
            settled = [one for both in asked for one in both if one not in (*feedback[0], *feedback[1])]
        return TurnRecord(
            iteration=number,
            step=self._step(number),
            decision=ended.get("decision"),
            score=ended.get("score"),
            candidate=candidate,
            observation=_text(self._value(number, "execute")),
            before=before,
            difference=difference,
            dimensions=tuple(_dimensions(verdict)),
            blocking=feedback[0],
            suggestions=feedback[1],
            settled=tuple(settled) if candidate and ended else (),
            note=note(ended) if ended.get("error") else _barred(verdict) or _way(ended),
            usage=Usage(**ended.get("usage") or {}),
            seconds=ended.get("seconds") or 0.0,
            events=tuple(map(_row, events)),
        )

    def _of(self, number: int) -> list[Event]:
        return self._events.get(number, [])

    def _ended(self, number: int) -> Event:
        """The event with which an iteration ended; empty while it goes on."""
        return next((one for one in self._of(number) if one["event"] == "iteration"), {})

    def _step(self, number: int) -> str | None:
        """The step of a flow that is visited."""
        return next((event["step"] for event in self._of(number) if "step" in event), None)

    def _option(self, number: int) -> int:
        """Which of several candidates was the turn's: the first with its score, if it can be one that was not barred."""
        ended = self._ended(number)
        fits = [at for at, score in enumerate(ended.get("options") or ()) if score == ended.get("score")]
        judged = {
            one["option"]: one for one in self._of(number) if one.get("phase") == "judge" and "option" in one
        }
        free = (at for at in fits if not judged.get(at, {}).get("value", {}).get("barred"))
        return next(free, fits[0] if fits else 0)

    def _value(self, number: int, phase: str) -> Any:
        """What a phase of an iteration returned, for the candidate that was the turn's."""
        steps = [one for one in self._of(number) if one["event"] == "step" and one["phase"] == phase]
        option = self._option(number)
        found = next((step for step in steps if step.get("option") in (None, option)), {})
        return found.get("value")

    def _verdict(self, number: int) -> Event:
        value = self._value(number, "judge")
        return value if isinstance(value, dict) else {}

    def _candidate(self, number: int) -> str:
        """The candidate, or what a step of a flow put out, as text; empty where there is none."""
        if self._step(number):
            done = [one for one in self._of(number) if one["event"] in ("step", "answer")]
            said = [one.get("value", one.get("answer")) for one in done if one.get("phase") not in LOOKS]
            return _text(said[-1] if said else None)
        value = self._value(number, "propose")
        if any(one["event"] == "step" and "option" in one for one in self._of(number)):
            value = value["candidates"][self._option(number)]  # of a BestOf
        return _text(value)

    def _before(self, number: int) -> int | None:
        """The iteration to compare with: the best before, or the last visit of the same step."""
        if step := self._step(number):
            return next((one for one in range(number - 1, 0, -1) if self._step(one) == step), None)
        return self._ended(number - 1).get("best") if number > 1 else None


LOOKS = ("poll", "wait", "supervisor")


def find_difference(before: str, after: str) -> list[Piece]:
    """What became of `before`, line by line, and word by word where lines changed.

    `same` and `gone` together are `before`, `same` and `new` together `after` (of each the first 20,000 characters).
    """
    pieces: list[Piece] = []
    lines = [text[:COMPARED].splitlines(keepends=True) for text in (before, after)]
    for same, old, new in _changes(*lines):
        words = [WORDS.findall("".join(part)) for part in (old, new)]
        for alike, gone, fresh in [(True, old, new)] if same else _changes(*words):
            found = [("same", gone)] if alike else [("gone", gone), ("new", fresh)]
            pieces += [Piece(kind, "".join(text)) for kind, text in found if text]
    return pieces


WORDS = re.compile(r"\s*(?:\w+|[^\w\s])|\s+")


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[bool, Sequence[str], Sequence[str]]]:
    """Whether they are the same, and the parts of `old` and `new` that stand for each other, in order."""
    if len(old) * len(new) > 4_000_000:  # two novels: it would take minutes
        yield False, old, new
        return
    for what, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        yield what == "equal", old[a:b], new[c:d]


def note(event: Event) -> str:
    """What failed in a turn, or what its judge asked for, in words."""
    if error := event.get("error"):
        message = error["message"].removeprefix(f"{error['kind']}: ")
        return f"{error['phase']} failed, {error['kind']}: {message}"
    asked = event.get("feedback") or {"blocking": (), "suggestions": ()}
    return "; ".join([*asked["blocking"], *(f"(optional) {text}" for text in asked["suggestions"])])


def _way(ended: Event) -> str:
    return f"→ {ended['goto']}, {ended['via']}" if ended.get("goto") else ended.get("via") or ""


def _feedback(ended: Event, verdict: Event) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is asked for, blocking and suggested: as the iteration ended, or while it goes on as its judge said."""
    feedback = ended.get("feedback") or verdict.get("feedback") or {}
    return tuple(feedback.get("blocking", ())), tuple(feedback.get("suggestions", ()))


def _dimensions(verdict: Event) -> Iterator[Dimension]:
    scores, evidence = verdict.get("dimensions") or {}, verdict.get("evidence") or {}
    voids = verdict.get("voids") or {}
    for name in dict.fromkeys((*scores, *evidence, *voids)):
        said = f"void: {voids[name]}" if name in voids else _text(evidence.get(name))
        yield Dimension(name=name, score=scores.get(name), evidence=said)


def _barred(verdict: Event) -> str:
    if not verdict.get("barred"):
        return ""
    return f"{'fallback: ' if verdict.get('fallback') else ''}may not stop the loop: {verdict['barred']}"


HEAD = ("seq", "hash", "time", "event", "iteration", "phase", "option", "usage", "seconds", "type", "request")


def _row(event: Event) -> EventRow:
    option = event.get("option")
    used = Usage(**event.get("usage") or {})
    held = {key: value for key, value in event.items() if key not in HEAD}
    said = held["value"] if held.keys() == {"value"} else held
    return EventRow(
        seq=event.get("seq"),
        time=event.get("time", ""),
        event=event["event"],
        where=f"{event.get('phase', '')}{'' if option is None else f' {option}'}",
        seconds=event.get("seconds"),
        tokens=used.tokens,
        said=f"{said if isinstance(said, str) else json.dumps(said, ensure_ascii=False):.300}"
        if said
        else "",
    )


def _text(value: Any) -> str:
    """A recorded value as people read it: text as it is, anything else as YAML, with line breaks where they are."""
    if value is None or isinstance(value, str):
        return value or ""
    return yaml.dump(value, Dumper=_Readable, allow_unicode=True, sort_keys=False, width=100).rstrip()


class _Readable(yaml.SafeDumper):
    """Texts of several lines stand as they are, not in quotes; and nothing is said by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _string(dumper: yaml.SafeDumper, said: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", said, style="|" if "\n" in said else None)


_Readable.add_representer(str, _string)
