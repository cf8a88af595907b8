"""What a hostile program is, and the text that is run for it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any, Literal

PRELUDE = Path(__file__).with_name("prelude.py").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program that tries something forbidden, and prints `ESCAPED: <what>` if it succeeds."""

    name: str
    group: str
    code: str
    threatens: str
    """What a success would mean, in a phrase."""
    needs: tuple[str, ...] = ()
    """The protections that it depends on, by the names of `Protection`; limits are always there."""
    seconds: float = 2.0
    """Its limit of wall time."""
    ends: tuple[str, ...] = ()
    """How its execution may end; empty: anyhow, save by a mistake of its own."""
    then: str = ""
    """A program that runs after it in the same sandbox and prints `ESCAPED: <what>` if something was left behind."""
    way: Literal["run", "session", "shared"] = "run"
    """As a program of its own; as the first cell of a session; or in a folder that all runs of a sandbox share."""
    neighbour: bool = False
    """Whether an innocent program runs in the same sandbox meanwhile, and must not be disturbed."""
    bare: bool = False
    """Run the code as it is, without the prelude."""


def prepared(code: str, host: Mapping[str, Any]) -> str:
    """`code` behind the prelude, with `host` as its HOST."""
    return PRELUDE.replace("@HOST@", json.dumps(host)) + dedent(code)
