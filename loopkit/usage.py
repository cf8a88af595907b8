"""What a phase spent: model calls, tokens and money, counted where the calls are made.

Models call `spend`; the journal opens a meter around each phase with `metered`. Neither knows the other, so a
plain function that asks a model three times is billed for three calls without doing anything about it.
"""

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(kw_only=True)
class Usage:
    """Running totals. Tokens as the provider counts them; `cached_tokens` are part of `input_tokens`."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    """US dollars, at the list prices pydantic-ai knows."""
    unpriced_calls: int = 0
    """Calls whose price nobody knows: with any of these, `cost` is only a lower bound."""

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def add(self, other: "Usage") -> None:
        """Add `other` to these totals, in place."""
        self.calls += other.calls
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cached_tokens += other.cached_tokens
        self.cost += other.cost
        self.unpriced_calls += other.unpriced_calls

    def spent(self) -> dict[str, int | float]:
        """The totals that are not zero, by name: how usage is recorded. `Usage(**recorded)` gives it back."""
        return {name: value for name, value in vars(self).items() if value}


# Tasks copy their parent's context, so phases that fan out with asyncio.gather share one meter.
_meter: ContextVar[Usage | None] = ContextVar("loopkit_meter", default=None)


class metered:
    """`with metered() as usage:` counts what is spent inside. Blocks nest: the outer one is billed as well."""

    def __enter__(self) -> Usage:
        self._usage, self._outer = Usage(), _meter.get()
        self._token = _meter.set(self._usage)
        return self._usage

    def __exit__(self, *_: object) -> None:
        _meter.reset(self._token)
        if self._outer is not None:
            self._outer.add(self._usage)


def spend(usage: Usage) -> None:
    """Bill `usage` to the innermost meter; without one it goes uncounted."""
    if (meter := _meter.get()) is not None:
        meter.add(usage)
