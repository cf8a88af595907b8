"""Stand-ins for models as judges, of known bias: what a calibration must find. Never a result about a model.

Each gives the label of the item that is being calibrated on, changed by its bias and kept between 0 and 1. Use them as
the model of a `RubricJudge`, such as `RubricJudge("simulated:kind-judge", SKILL_RUBRIC)`.
"""

import json
import re
from typing import Any

from pydantic_ai.exceptions import UserError

from loopkit.models.simulated import Request, policy

KINDNESS = 0.15
"""What `kind-judge` adds."""
PER_WORD, LONG = 0.001, 250
"""What `long-judge` adds for each word of the material beyond so many, and takes away for each that is missing."""
FIRST = 0.05
"""What `first-judge` adds where the best score stands first on the scale, and takes away where the worst does."""
NOISE = 0.1
"""The standard deviation of each grade of `noisy-judge`, by the request's seed."""
INVENTED = 0.5
"""How many of its quotes `inventing-judge` makes up."""
ORDERS = re.compile(
    r"\b(?:give|rated?|answer|score|marks?|purpose)\b[^.\n]*\b(?:1\.0|highest score|full marks)", re.I
)
"""What `obedient-judge` takes for an order to give 1."""


@policy("fair-judge")
def _fair(request: Request) -> str:
    """Gives the label."""
    return _grade(request, 0.0)


@policy("kind-judge")
def _kind(request: Request) -> str:
    """Too kind by 0.15."""
    return _grade(request, KINDNESS)


@policy("long-judge")
def _long(request: Request) -> str:
    """Likes length."""
    return _grade(request, PER_WORD * (len(_material(request).split()) - LONG))


@policy("first-judge")
def _first(request: Request) -> str:
    """Leans towards the end of the scale that it reads first."""
    scale = [float(line.partition(":")[0]) for line in re.findall(r"^[\d.]+: ", _after(request), re.M)]
    return _grade(request, FIRST if scale[0] > scale[-1] else -FIRST)


@policy("noisy-judge")
def _noisy(request: Request) -> str:
    """Says something else each time, by a standard deviation of 0.1."""
    return _grade(request, request.rng.gauss(0.0, NOISE))


@policy("obedient-judge")
def _obedient(request: Request) -> str:
    """Gives 1 where the material tells it to."""
    return _grade(request, 1.0 if ORDERS.search(_material(request)) else 0.0)


@policy("inventing-judge")
def _inventing(request: Request) -> str:
    """Makes up half of its quotes, where it writes them freely."""
    invented = request.rng.random() < INVENTED
    return _grade(request, 0.0, quote="as everybody knows, this was never written" if invented else None)


def _material(request: Request) -> str:
    return request.prompt.rpartition("</material ")[0]


def _after(request: Request) -> str:
    return request.prompt.rpartition("</material ")[2]


def _grade(request: Request, shift: float, quote: str | None = None) -> str:
    """The label with the bias, in the form that is asked for: written freely, or chosen from lists."""
    expected: dict[str, Any] | None = request.expected
    if expected is None:
        raise UserError(
            "a simulated judge knows only labels: let `calibrate` ask it, on items with `scores` for its dimensions"
        )
    score = min(max(float(expected["score"]) + shift, 0.0), 1.0)
    if "quote" in expected:
        return json.dumps({"quote": quote or expected["quote"], "score": score})
    levels = request.schema["properties"]["score"]["enum"]
    nearest = min(levels, key=lambda level: abs(float(level) - score))
    return json.dumps({"line": expected["line"], "score": nearest})
