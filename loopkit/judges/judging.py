"""Judging a set of items, again and again and under probes, with every judgement on record."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable

from pydantic import TypeAdapter

from loopkit.judges.evidence import quote_problem
from loopkit.judges.fallback import Judge
from loopkit.judges.labelled import Labelled
from loopkit.judges.material import Material
from loopkit.judges.probes import injected, padded
from loopkit.judges.rubric import truth
from loopkit.log import RunLog, StoreError, encode
from loopkit.verdict import Failure, Verdict

PROBES = ("position", "verbosity", "injection")
"""What can be done to an item to see whether its score changes."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What a judge said of one item, once."""

    item: str
    """The item's id."""
    probe: str | None
    """What was done to it first, one of `PROBES`; None for the item as it is."""
    repeat: int
    """0 for the first time, then 1, 2, …; always 0 under a probe."""
    verdict: Verdict | None
    """None when the judge raised."""
    error: str | None = None
    """The kind of a `Failure`, or the type of any other exception."""
    detail: str | None = None
    """What the exception said, or why the verdict is a fallback."""
    typed: bool = False
    """Whether the error was a `Failure`: a finding about the judge, while other exceptions are ours or the network's."""
    quotes: Mapping[str, bool] = field(default_factory=dict)
    """By dimension, whether the quote that its score rests on stands in the material."""

    @property
    def settled(self) -> bool:
        """Whether the judge had its say, be it nothing of use: whatever else went wrong is ours or the network's."""
        return self.typed if self.verdict is None else self.verdict.fallback != "error"

    @property
    def failure(self) -> str | None:
        """The word to count by, if the judge gave no verdict of its own."""
        return f"fallback ({self.verdict.fallback})" if self.verdict and self.verdict.fallback else self.error

    @property
    def score(self) -> float | None:
        """The judge's own score; None where it has none."""
        return None if self.verdict is None or self.verdict.fallback else self.verdict.score

    def accepts(self, threshold: float) -> bool:
        """Whether a gate at `threshold` would stop on it."""
        return self.verdict is not None and self.verdict.passes(threshold)


_JUDGEMENT = TypeAdapter(Judgement)


async def judge_all(
    judge: Judge,
    items: Sequence[Labelled],
    *,
    repeats: int,
    probes: Sequence[str],
    seed: int,
    parallel: int,
    log: RunLog | None,
    on_done: Callable[[int, int], None] | None,
) -> list[Judgement]:
    """Each item `repeats` times as it is, then once under each probe: all judgements, by item.

    What `log` holds already is not asked again, if it is `settled`.
    """
    settled = _on_record(log)
    rounds = [(None, repeat) for repeat in range(repeats)]
    rounds += [(probe, 0) for probe in probes if probe != "position" or hasattr(judge, "variant")]
    free, done, total = asyncio.Semaphore(parallel), 0, len(rounds) * len(items)

    async def one(number: int, item: Labelled) -> list[Judgement]:
        nonlocal done
        made = []
        async with free:
            # One after the other, so that texts that begin alike are neighbours: models cache what they have read.
            for probe, repeat in rounds:
                material = _shown(item, number, probe)
                key = hashlib.sha256(encode([item, material, probe, repeat, seed])).hexdigest()[:32]
                if (judgement := settled.get(key)) is None:
                    asked = _variant(judge, seed + repeat, reverse=probe == "position")
                    judgement = await _judgement(asked, item, material, probe, repeat)
                    if log:
                        log.append("judgement", key=key, **vars(judgement))
                        log.sync()
                made.append(judgement)
                done += 1
                if on_done:
                    on_done(done, total)
                await asyncio.sleep(0)  # a judge that is no coroutine would keep an interruption waiting
        return made

    tasks = [asyncio.ensure_future(one(number, item)) for number, item in enumerate(items)]
    try:
        return [judgement for made in await asyncio.gather(*tasks) for judgement in made]
    finally:
        for task in tasks:
            task.cancel()


def _on_record(log: RunLog | None) -> dict[str, Judgement]:
    found = {}
    for event in log.past if log else ():
        if event["event"] == "judgement":
            fields = {name: event[name] for name in Judgement.__dataclass_fields__}
            judgement = _JUDGEMENT.validate_python(fields)
            if judgement.settled:
                found[event["key"]] = judgement
    return found


def _shown(item: Labelled, number: int, probe: str | None) -> Material:
    if probe == "verbosity":
        return padded(item.material)
    return injected(item.material, number) if probe == "injection" else item.material


def _variant(judge: Judge, seed: int, *, reverse: bool) -> Judge:
    if not hasattr(judge, "variant"):
        return judge
    return judge.variant(seed=seed, reverse=True) if reverse else judge.variant(seed=seed)


async def _judgement(
    judge: Judge, item: Labelled, material: Material, probe: str | None, repeat: int
) -> Judgement:
    verdict, said = None, {}
    token = truth.set(item.scores or None)
    try:
        verdict = judge(material, None)
        verdict = await verdict if isawaitable(verdict) else verdict
        verdict = verdict if isinstance(verdict, Verdict) else Verdict(score=verdict)
        said = {"detail": verdict.barred if verdict.fallback else None, "quotes": _quotes(verdict, material)}
    except StoreError:
        raise  # the record itself cannot be written: nothing more can be promised
    except Failure as failure:
        said = {"error": failure.kind, "detail": failure.detail, "typed": True}
    except Exception as error:
        verdict, said = None, {"error": type(error).__name__, "detail": str(error)}
    finally:
        truth.reset(token)
    return Judgement(item=item.id, probe=probe, repeat=repeat, verdict=verdict, **said)


def _quotes(verdict: Verdict, material: Material) -> dict[str, bool]:
    found = {
        name: quote_problem(text, material) is None
        for name, text in verdict.evidence.items()
        if name in verdict.dimensions and name != "checks"  # what `Hybrid` says there is no quote
    }
    return found | {name: False for name, reason in verdict.voids.items() if reason.startswith("quote")}
