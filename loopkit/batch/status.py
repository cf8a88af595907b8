"""A batch's own log, `status.jsonl`: what was asked, which notebooks ended how, what was found, and when.

`summary.json` and `report.html` are overwritten each time; this log only grows, so it holds the verdicts of all times.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from loopkit.batch.claims import Claim
from loopkit.batch.spec import BatchSpec, Cell
from loopkit.store import RunLog, Store, StoreError, read_events

STATUS = "status.jsonl"
RECORDS = "records"

Event = Mapping[str, Any]
Begun = list[tuple[Event, list[Event]]]
"""Each event `batch` of a log, with the events that followed it."""
State = Literal["finished", "running", "interrupted"]
FOUND = (
    "id",
    "verdict",
    "n",
    "p",
    "p_holm",
    "effect",
    "models",
    "simulated",
    "digest",
    "declared",
    "seen",
    "post_hoc",
)
"""What is kept of an adjudicated claim; its words and its terms stand where the batch began."""


def opening(spec: BatchSpec, cells: Sequence[Cell], *, name: str, command: str) -> dict[str, Any]:
    """The fields of the event `batch`, with which a batch begins: all that a report needs beside the records.

    With the digest of each claim it is a claim's declaration, at the time of the event.
    """
    return {
        "name": name,
        "command": command,
        "experiment": spec.experiment,
        "question": spec.question,
        "group_by": spec.group_by,
        "claims": spec.claims,
        "digests": {claim.id: claim.digest for claim in spec.claims},
        "cells": [cell.id for cell in cells],
        "trials": {cell.id: cell.keys for cell in cells},
    }


def record_summary(status: RunLog, summary: Event) -> None:
    """Append the event `summary`: each claim's verdict now, how many trials ran and could not, and the provenance."""
    rows = summary["rows"]
    status.append(
        "summary",
        claims=[{key: claim[key] for key in FOUND} for claim in summary["claims"]],
        n=sum(row["n"] for row in rows),
        errors=sum(row["errors"] for row in rows),
        complete=not summary["problems"],
        provenance=summary["provenance"],
    )
    status.sync()


@dataclass(frozen=True, kw_only=True)
class BatchRecord:
    """A batch as its log tells of it: what it was last begun with, and how far it has come.

    Whatever an earlier loopkit did not record yet raises StoreError when it is asked for.
    """

    folder: Path
    opened: Event = field(repr=False)
    """The last event `batch`."""
    since: Sequence[Event] = field(repr=False)
    """The events after that one."""
    state: State
    """`finished` once it was summarised; else `running` while a process holds the log, or `interrupted`."""
    declared: Mapping[str, str] = field(repr=False)
    """When each claim first stood in the log, by its digest."""

    @property
    def name(self) -> str:
        return self.opened["name"]

    @property
    def question(self) -> str:
        return self._said("question")

    @property
    def group_by(self) -> list[str]:
        return self._said("group_by")

    @property
    def claims(self) -> list[Claim]:
        """Raises StoreError for claims that this version of loopkit cannot read."""
        return _claims(self.folder, self.opened)

    @property
    def trials(self) -> dict[str, list[str]]:
        """The keys of the trials of each cell."""
        return self._said("trials")

    def _said(self, field: str) -> Any:
        if field not in self.opened:
            raise StoreError(
                f"{self.folder / STATUS} does not say which trials are the batch's own: an earlier loopkit wrote it. "
                f"Run the batch again, which does only what is missing: {self.opened['command']}"
            )
        return self.opened[field]

    @property
    def keys(self) -> list[str]:
        """The keys of all its trials."""
        return [key for keys in self.trials.values() for key in keys]

    @property
    def failed(self) -> list[str]:
        """A line for each notebook that did not come to its end, and was not repeated with success."""
        last = {event["cell"]: event for event in self.since if event["event"] == "cell"}
        return [
            f"{cell}: notebook {event['status']}: {event['detail']}"
            for cell, event in last.items()
            if event["status"] != "done"
        ]

    def absent(self, ended: Iterable[str]) -> list[str]:
        """A line for each cell some of whose trials are not among those that have `ended`, given by their keys."""
        there = set(ended)
        missing = {cell: sum(key not in there for key in keys) for cell, keys in self.trials.items()}
        return [
            f"{cell}: {count} of {len(self.trials[cell])} trials have no result"
            for cell, count in missing.items()
            if count
        ]

    @property
    def provenance(self) -> dict[str, str]:
        """Of its summary; before there is one, the command and when it began."""
        for event in self.since:
            if event["event"] == "summary":
                return dict(event["provenance"])
        return {"command": self.opened["command"], "begun": self.opened["time"]}


def read_batch(folder: str | Path) -> BatchRecord:
    """The batch in `folder`, as it was last begun. Raises StoreError when there is none, or its log is damaged."""
    folder = Path(folder)
    begun = read_status(folder)
    opened, since = begun[-1]
    return BatchRecord(
        folder=folder,
        opened=opened,
        since=since,
        state=state(folder, since),
        declared=declarations(folder, begun, opened["name"]),
    )


def declarations(folder: Path, begun: Begun, name: str) -> dict[str, str]:
    """When each claim of the batch `name` first stood in the log of `folder`, by its digest."""
    times: dict[str, str] = {}
    for opened, _ in begun:
        if opened["name"] == name:
            for digest in digests(folder, opened).values():
                times.setdefault(digest, opened["time"])
    return times


def digests(folder: Path, opened: Event) -> dict[str, str]:
    """The digest of each claim by its id. An earlier loopkit wrote the terms only: they say what it is."""
    if "digests" in opened:
        return opened["digests"]
    return {claim.id: claim.digest for claim in _claims(folder, opened)}


def _claims(folder: Path, opened: Event) -> list[Claim]:
    try:
        return [Claim.model_validate(claim) for claim in opened["claims"]]
    except ValidationError as error:
        raise StoreError(f"{folder / STATUS}: cannot read its claims: {error}") from error


def read_status(folder: Path) -> Begun:
    """The log of the batch in `folder`, by its beginnings, at least one. Raises StoreError as `read_batch` does."""
    path = folder / STATUS
    if not path.is_file():
        raise StoreError(
            f"no batch in {folder}: there is no {STATUS}. Name a folder that `loopkit batch --out` wrote"
        )
    begun: Begun = []
    for event in read_events(path):
        if event["event"] == "batch":
            begun.append((event, []))
        elif begun:
            begun[-1][1].append(event)
    if not begun:
        raise StoreError(f"no batch in {folder}: it died before its {STATUS} began; run it again")
    return begun


def state(folder: Path, since: Iterable[Event]) -> State:
    """How far the batch in `folder` has come, whose log has the events `since` after its last beginning."""
    if any(event["event"] == "summary" for event in since):
        return "finished"
    return "running" if Store(folder).is_held(Path(STATUS).stem) else "interrupted"
