"""The ledger: every claim of every batch, and its verdict over time.

It is read from the log of each batch (`status.jsonl`), which keeps the verdicts of all times, and from the summaries
that are committed with a project as its formal results (`experiments/<name>/results/*.json`).
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopkit.batch.claims import simulated
from loopkit.batch.status import FOUND, STATUS, Begun, digests, read_status, state
from loopkit.export import to_frame
from loopkit.log import StoreError

if TYPE_CHECKING:
    import pandas as pd

PLACES = ("runs", "experiments")
CLAIM = (
    "experiment", "batch", "claim", "verdict", "since", "changes", "entries", "n", "p", "p_holm", "effect", "complete",
    "simulated", "post_hoc", "seen", "declared", "digest", "state", "source", "says", "problem",
)  # fmt: skip
ENTRY = (
    "time", "experiment", "batch", "claim", "verdict", "restated", "n", "p", "p_holm", "effect", "complete", "simulated",
    "post_hoc", "seen", "declared", "digest", "source", "says", "command", "loopkit",
)  # fmt: skip

LATER = ("p_holm", "simulated", "post_hoc", "seen", "declared", "digest")
"""What earlier logs and results do not say of a verdict."""

Row = dict[str, Any]


def ledger_df(*folders: str | Path, history: bool = False) -> "pd.DataFrame":
    """One row per claim and batch at or below `folders` (default: `runs` and `experiments`, those that are there).

    The columns: experiment, batch, claim (its id); verdict, `since` when it stands (ISO 8601) and the `changes` that led
    to it ("not supported → supported", with "(restated)" where the claim's words or terms were changed, at the end where
    no verdict has followed yet); how many `entries` there are; n (trials, or the items of a comparison), p, `p_holm` after
    Holm's correction over the batch's claims, and effect; whether the batch was `complete`, and whether `none`, `some` or
    `all` models that the claim is about are `simulated` (an earlier loopkit only told when all are); `post_hoc`, whether the
    claim was `declared` (when, ISO 8601) after trials that it is about were on record, how many it had `seen`, and the
    `digest` of its terms (None where an earlier loopkit did not say); state (`finished`; `running` or `interrupted`, when the
    verdict is of an earlier time, or missing; `withdrawn`, when the batch was begun again without the claim; `recorded`,
    for a formal result; `damaged`, with the `problem`); source, the batch's folder or the result's file; and what it
    `says`, or said at its latest verdict.

    With `history` one row per entry instead, oldest first: its time, verdict and numbers, whether the claim was
    `restated`, what it said then, and the command and version of loopkit that it comes from.

    Raises StoreError for a folder that is not there. A log or a result that cannot be read is a row, and hides no other.
    """
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise StoreError(
                f"no folder {folder}: name one that holds batches, or the results of experiments"
            )
    found = sorted(set(_found(folders or filter(os.path.isdir, PLACES))))
    tracks = [track for path in found for track in _tracks(path)]
    if not history:
        return to_frame([track.now for track in tracks], columns=CLAIM)
    entries = [track.claim | entry for track in tracks for entry in track.entries]
    return to_frame(sorted(entries, key=lambda entry: entry["time"]), columns=ENTRY)


@dataclass(kw_only=True)
class Track:
    """One claim of one batch through time."""

    claim: Row
    """What it is, and where it stands."""
    state: str
    entries: list[Row] = field(default_factory=list)
    """Its verdicts, oldest first, with what they rest on."""
    asked_anew: bool = False
    """Whether its words or terms were changed after the last of them."""

    @property
    def now(self) -> Row:
        """The row of the ledger."""
        steps, since, before = [], None, None
        for entry in self.entries:
            if entry["restated"] or entry["verdict"] != before:
                steps.append(entry["verdict"] + " (restated)" * entry["restated"])
                since, before = entry["time"], entry["verdict"]
        latest = self.entries[-1] if self.entries else {}
        if latest and self.asked_anew:
            steps.append("(restated)")
        changes = " → ".join(steps) if len(steps) > 1 else None
        story = {"since": since, "changes": changes, "entries": len(self.entries), "state": self.state}
        said = {"says": latest.get("says", self.claim.get("says"))}  # beside a verdict, what it is of
        return latest | self.claim | said | story


def _found(folders: Iterable[str | Path]) -> Iterator[Path]:
    """The folders of batches, and the files among results."""
    for top in folders:
        for path, inner, files in os.walk(top):
            folder = Path(path)
            if STATUS in files:
                inner.clear()  # its records are many, and none of them is a batch
                yield folder
            if folder.name == "results":
                yield from (folder / name for name in files if name.endswith(".json"))
            inner[:] = [name for name in inner if not name.startswith(".")]


def _tracks(path: Path) -> list[Track]:
    """What the batch in the folder `path`, or the result in the file `path`, tells of each claim."""
    try:
        return _of_batch(path) if path.is_dir() else _of_result(path)
    except StoreError as error:
        return [Track(claim={"source": str(path), "problem": str(error)}, state="damaged")]


def _of_result(path: Path) -> list[Track]:
    if (summary := _read_summary(path)) is None:
        return []
    return [
        Track(
            claim=_claim(path, summary, found),
            state="recorded",
            entries=[_entry(found, summary, restated=False)],
        )
        for found in summary["claims"]
    ]


def _of_batch(folder: Path) -> list[Track]:
    begun = read_status(folder)
    _add_summary(folder, begun)
    last = {opened["name"]: number for number, (opened, _) in enumerate(begun)}
    tracks: dict[tuple[str, str], Track] = {}
    terms: dict[tuple[str, str], tuple[str, str]] = {}
    for number, (opened, since) in enumerate(begun):
        # Only the last to begin can still be running.
        came_to = state(folder, since) if number == len(begun) - 1 or _summaries(since) else "interrupted"
        for claim in opened["claims"]:
            which = opened["name"], claim["id"]
            track = tracks.setdefault(which, Track(claim={}, state=""))
            track.claim = _claim(folder, opened | {"batch": opened["name"]}, claim)
            track.state = came_to if number == last[opened["name"]] else "withdrawn"
            asked = (claim["says"], digests(folder, opened)[claim["id"]])
            for summary in _summaries(since):
                for found in summary["claims"]:
                    if found["id"] == claim["id"]:
                        restated = terms.get(which, asked) != asked
                        said = {"says": claim["says"]}
                        track.entries.append(_entry(found, summary, restated=restated) | said)
                        terms[which] = asked
            track.asked_anew = terms.get(which, asked) != asked
    return list(tracks.values())


def _summaries(since: Iterable[Row]) -> list[Row]:
    return [event for event in since if event["event"] == "summary"]


def _add_summary(folder: Path, begun: Begun) -> None:
    """An earlier loopkit left no verdicts in the log: then those in `summary.json` are the last there were."""
    path = folder / "summary.json"
    if any(_summaries(since) for _, since in begun) or not path.exists():
        return
    if (summary := _read_summary(path)) is None:
        return
    finished = datetime.fromisoformat(summary["time"])
    for opened, since in reversed(begun):
        if opened["name"] == summary["batch"] and datetime.fromisoformat(opened["time"]) <= finished:
            since.append(summary)
            return


def _read_summary(path: Path) -> Row | None:
    """A file that holds a summary, as the event `summary` of a log; None if it holds something else.

    Raises StoreError when it cannot be read.
    """
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(summary, dict) or "claims" not in summary:
            return None
        rows, provenance = summary["rows"], summary["provenance"]
        finished = datetime.fromisoformat(provenance["finished"])
        # The first summaries had neither n nor models with their claims.
        common = dict.fromkeys(LATER) | {"n": None, "models": sorted({str(row["model"]) for row in rows})}
        wanted = ("id", "says", *FOUND)
        return {
            "event": "summary",
            "time": finished.astimezone(UTC).isoformat(timespec="milliseconds"),  # as in a log
            "batch": summary["batch"],
            "experiment": rows[0]["experiment"] if rows else None,
            "claims": [{key: (common | claim)[key] for key in wanted} for claim in summary["claims"]],
            "complete": not summary.get("problems"),
            "provenance": provenance,
        }
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise StoreError(f"cannot read {path} as the summary of a batch: {error!r:.200}") from error


def _claim(source: Path, batch: Row, claim: Row) -> Row:
    where = {"experiment": batch.get("experiment"), "batch": batch["batch"], "source": str(source)}
    return where | {"claim": claim["id"], "says": claim["says"]}


def _entry(found: Row, summary: Row, *, restated: bool) -> Row:
    provenance = summary["provenance"]
    return {
        "time": summary["time"],
        "restated": restated,
        **{key: found[key] for key in ("verdict", "n", "p", "effect")},
        **{key: found.get(key) for key in LATER},
        "complete": summary["complete"],
        "simulated": found.get("simulated") or _all_or_none(found["models"]),
        "command": provenance.get("command"),
        "loopkit": provenance.get("loopkit"),
    }


def _all_or_none(models: list[str]) -> str:
    """An earlier loopkit did not tell which models a claim's other side had, nor always which its own."""
    return "all" if simulated(models) == "all" else "none"
