"""Models by one string: `embedded`, `simulated:<policy>`, or any id that pydantic-ai knows.

    model = resolve("embedded")
    answer = await ask(model, "Name a colour.", output=Colour)

`resolve` gives a pydantic-ai model whose requests are billed to the loop's meter; `ask` puts one typed question
and turns whatever can be wrong with an answer into a typed `Failure`.
"""

from loopkit.models.asking import ask
from loopkit.models.programs import program_in
from loopkit.models.resolving import ModelUnavailable, check_id, fingerprint, resolve

__all__ = ["ModelUnavailable", "ask", "check_id", "fingerprint", "program_in", "resolve"]
