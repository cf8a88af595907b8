from collections.abc import Callable
from dataclasses import dataclass

from loopkit.judges.material import Material


@dataclass(frozen=True, kw_only=True)
class Problem:
    place: str
    text: str

    def __str__(self):
        return f"{self.place}: {self.text}"


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    name: str
    passed: bool
    problems: tuple = ()
    veto: bool = False


@dataclass(frozen=True, kw_only=True)
class Check:
    name: str
    test: Callable
    veto: bool = False


def run_checks(checks, candidate):
    material = Material.of(candidate)
    out = []
    for c in checks:
        r = c.test(material)
        ps = (
            ()
            if r in (None, True, [])
            else (Problem(place=material.name, text=r if isinstance(r, str) else "failed"),)
            if not isinstance(r, list)
            else tuple(r)
        )
        out.append(CheckResult(name=c.name, passed=not ps, problems=ps, veto=c.veto))
    return out
