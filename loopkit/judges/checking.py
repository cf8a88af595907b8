"""A check: free, exact and named. It says of a candidate whether it passes, and where it does not."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from loopkit.journal import message_of
from loopkit.judges.material import Material

MOST = 20
"""Problems of one check that are named; a thousand dead links are one fault, made a thousand times."""


@dataclass(frozen=True)
class Problem:
    """What is wrong, and where."""

    place: str
    """A file, with its line where there is one: `SKILL.md:3`."""
    text: str
    """What is wrong there."""

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


Test = Callable[[Material], "bool | str | Problem | Iterable[str | Problem] | None"]
"""None, True or nothing: passed. False, a text, a Problem or several of these: failed."""


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """What a check found."""

    name: str
    """The check's name."""
    passed: bool
    """Whether there was nothing to find."""
    problems: tuple[Problem, ...] = ()
    """What there was, at least one if it failed."""
    veto: bool = False
    """Whether a failure bars the candidate from stopping a loop, whatever its score."""

    def lines(self) -> tuple[str, ...]:
        """The problems as feedback: `front_matter: SKILL.md:1: no front matter: …`."""
        return tuple(f"{self.name}: {problem}" for problem in self.problems)


@dataclass(frozen=True)
class Check:
    """A named test. Called on a candidate, it gives a CheckResult; a test that raises has failed, with the reason said."""

    name: str
    """What it is called in results and feedback."""
    test: Test
    """A function of the Material; see `Test` for what it returns."""
    veto: bool = False
    """Whether a failure bars the candidate from stopping a loop."""

    def __call__(self, candidate: Any) -> CheckResult:
        """Check a Material, or anything that `Material.of` takes; it raises TypeError for what it does not."""
        material = Material.of(candidate)
        try:
            problems = _problems(self.test(material), material.name)
        except Exception as error:  # a check that is broken must neither pass a candidate nor end a loop
            problems = (
                Problem(
                    material.name, f"the check itself failed: {type(error).__name__}: {message_of(error)}"
                ),
            )
        return CheckResult(name=self.name, passed=not problems, problems=problems, veto=self.veto)

    def vetoing(self) -> "Check":
        """The same check, as a veto."""
        return replace(self, veto=True)


def _problems(answer: Any, name: str) -> tuple[Problem, ...]:
    if answer is None or answer is True:
        return ()
    if answer is False:
        return (Problem(name, "does not hold"),)
    if isinstance(answer, Problem):
        return (answer,)
    if isinstance(answer, str):
        return (Problem(name, answer),) if answer else ()
    problems = []
    for found in islice(answer, MOST + 1):
        if not isinstance(found, str | Problem):
            raise TypeError(f"a test gives texts and Problems, got a {type(found).__name__}")
        problems.append(Problem(name, found) if isinstance(found, str) else found)
    if len(problems) > MOST:
        problems[MOST] = Problem(name, f"more than {MOST} problems: the others are not listed")
    return tuple(problems)


def run_checks(checks: Iterable[Check], candidate: Any) -> list[CheckResult]:
    """What each of `checks` says of `candidate`, in their order. Raises TypeError if `Material.of` does not take it."""
    material = Material.of(candidate)
    return [check(material) for check in checks]


def share(results: Sequence[CheckResult]) -> float:
    """The part of `results` that passed, from 0 to 1. Raises ValueError where there are none."""
    if not results:
        raise ValueError("no checks, so no share of them: give at least one result")
    return sum(result.passed for result in results) / len(results)
