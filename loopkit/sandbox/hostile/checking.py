"""Running one hostile program, and looking for every sign that it was not contained."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..results import Limits
from .canaries import Canaries, descendants, end, lasting, left
from .program import Program, prepared
from .report import Row
from .signs import Signs

_GRACE = 3.0
"""Seconds past its limit within which an execution must have come back."""
_LOST = 25.0
"""Seconds past its limit after which it is not waited for any longer."""
# Of a program that contains a mistake: it did not try what it is for.
_MISTAKES = ("NameError", "SyntaxError", "IndentationError", "TypeError", "AttributeError", "ImportError",
             "ModuleNotFoundError", "UnboundLocalError", "KeyError", "IndexError")  # fmt: skip
_NEIGHBOUR = """
import time
kept = {secret!r}
open("neighbour", "w").write(kept)
time.sleep(0.7)
print("undisturbed" if open("neighbour").read() == kept else "disturbed")
"""
# A changed `print` is silent about an escape; it would not say this either.
_WELL = '\nprint("all is well")\n'


class Checker:
    """Runs programs one after the other, in one sandbox for as long as nothing goes wrong in it."""

    def __init__(self, factory: Callable[..., Any], limits: Limits, canaries: Canaries) -> None:
        self._factory, self._limits, self._canaries = factory, limits, canaries
        self._known = descendants(os.getpid())
        self._box: Any = None
        self._homes: list[Path] = []
        self._count = 0

    async def check(self, program: Program) -> Row:
        """Run one program, and say what came of it."""
        self._count += 1
        await self._ready()
        in_force = self._box.protection
        missing = [need for need in program.needs if getattr(in_force, need.replace(" ", "_")) == "none"]
        if missing:
            return _row(
                program, outcome="not enforced here", detail=f"no protection of {' and '.join(missing)}"
            )
        mark, before, started = self._canaries.mark(self._count), self._canaries.state(), time.monotonic()
        signs = Signs(self._canaries.secret.encode(), self._canaries.token)
        ended = ""
        try:
            async with asyncio.timeout(program.seconds + _LOST):
                ended = await self._run(program, mark, signs)
        except Exception as error:
            signs.errors.append(f"no result, but {type(error).__name__}: {error}")
        seconds = time.monotonic() - started
        # What the host saw stands before what the program said.
        signs.escapes[:0] = (
            self._canaries.planted(mark) + self._canaries.rung() + self._canaries.changed(before)
        )
        if processes := lasting(lambda: left(mark)):
            signs.escapes.insert(0, f"left processes {', '.join(map(str, processes))}")
            end(processes)
        if signs.good:
            await self._try_on(signs)
        if not signs.good:
            await self._leave()
        return _row(program, outcome=signs.outcome, ended=ended, detail=signs.detail, seconds=seconds)

    async def close(self) -> Row:
        """Close the sandbox, and look whether anything is left of it."""
        before, started = self._canaries.state(), time.monotonic()
        await self._leave()
        found = self._canaries.changed(before) + [
            f"{home} is still there" for home in self._homes if home.exists()
        ]
        mine = self._known | {self._canaries.bait}
        if processes := lasting(lambda: left(self._canaries.any_mark) | descendants(os.getpid()) - mine):
            found.append(f"left processes {', '.join(map(str, sorted(processes)))}")
        return Row(
            name="closing the sandbox",
            group="host",
            threatens="leaves something for ever, or removes too much",
            outcome="ESCAPED" if found else "contained",
            detail="; ".join(found),
            seconds=time.monotonic() - started,
        )

    async def _ready(self) -> None:
        if self._box is None:
            self._box = await self._factory(limits=self._limits).__aenter__()
            self._homes.append(Path(self._box.home))

    async def _leave(self) -> None:
        if self._box is not None:
            box, self._box = self._box, None
            await box.__aexit__(None, None, None)

    async def _run(self, program: Program, mark: str, signs: Signs) -> str:
        """Run it the way it wants to be run; return how it ended."""
        match program.way:
            case "shared":
                shared = {"folder": self._canaries.shared_folder(), "inputs": {"data": self._canaries.input}}
                async with self._factory(limits=self._limits, preload=(), **shared) as box:
                    self._homes.append(Path(box.home))
                    return await self._run_in(box, program, mark, signs)
            case "session":
                limits = replace(self._limits, seconds=program.seconds)
                async with self._box.session(limits=limits) as session:
                    ended = await self._run_in(session, program, mark, signs)
                    for _ in range(4):
                        await asyncio.sleep(0.1)  # for what it does between cells
                        if session.alive:
                            await self._execute(session, "1 + 1", self._limits, signs)
                    return ended
        if not program.neighbour:
            return await self._run_in(self._box, program, mark, signs)
        code = _NEIGHBOUR.format(secret=self._canaries.secret)
        neighbour = asyncio.create_task(self._box.run(code, limits=replace(self._limits, seconds=5)))
        await asyncio.sleep(0.2)
        try:
            ended = await self._run_in(self._box, program, mark, signs)
        finally:
            result = await neighbour
        if (result.ended, result.stdout) != ("ok", "undisturbed\n"):
            signs.escapes.append(f"disturbed another run: {result.ended} {result.message}")
        return ended

    async def _run_in(self, place: Any, program: Program, mark: str, signs: Signs) -> str:
        limits = replace(self._limits, seconds=program.seconds)
        code = program.code if program.bare else prepared(program.code, self._host(mark))
        result = await self._execute(place, code, limits, signs)
        mistaken = result.error is not None and result.error.type in _MISTAKES
        if result.ended not in program.ends if program.ends else mistaken:
            signs.errors.append(f"it was not to end as {result.ended}: {result.message}")
        if program.then:
            after = await self._execute(
                place, prepared(program.then, self._host(mark)) + _WELL, limits, signs
            )
            if after.ended != "ok" or not after.stdout.endswith("all is well\n"):
                signs.errors.append(f"what followed ended as {after.ended}: {after.message or after.stdout}")
        return result.ended

    async def _execute(self, place: Any, code: str, limits: Limits, signs: Signs) -> Any:
        started = time.monotonic()
        result = await place.run(code, limits=limits)
        late = time.monotonic() - started - limits.seconds
        if late > _GRACE:
            signs.errors.append(f"it came back {late:.1f} s after its limit")
        signs.look(result, limits)
        return result

    async def _try_on(self, signs: Signs) -> None:
        """A harmless program must run as if nothing had been."""
        try:
            async with asyncio.timeout(self._limits.seconds + _LOST):
                result = await self._box.run("1 + 1")
        except Exception as error:
            signs.errors.append(f"the next run failed: {type(error).__name__}: {error}")
        else:
            if (result.ended, result.value, result.stdout) != ("ok", "2", ""):
                signs.errors.append(
                    f"the next run went wrong: {result.ended} {result.message} {result.value}"
                )

    def _host(self, mark: str) -> dict[str, Any]:
        limits = ("memory", "disk", "file_size", "open_files", "processes")
        return self._canaries.host(mark) | {name: getattr(self._limits, name) for name in limits}


def _row(program: Program, **made: Any) -> Row:
    return Row(name=program.name, group=program.group, threatens=program.threatens, **made)
