"""What a step can come to, beside an output: a way on, a failure, the end of the run's budget, a question."""

from dataclasses import dataclass

from loopkit.flow.world import Question
from loopkit.history import PhaseError, StopReason


@dataclass(frozen=True, kw_only=True)
class Way:
    """Where a step leads, and why."""

    goto: str
    via: str


class StepFailed(Exception):
    """A step came to nothing usable."""

    def __init__(self, error: PhaseError) -> None:
        super().__init__(error.message)
        self.error = error

    @classmethod
    def because(cls, kind: str, message: str) -> "StepFailed":
        """A failure that the engine itself found."""
        return cls(PhaseError(phase="decide", kind=kind, message=message, typed=True))


class RunStopped(Exception):
    """A limit of the whole run opened in the middle of a step; or, `resumable`, somebody cancelled."""

    def __init__(self, reason: StopReason, *, resumable: bool = False) -> None:
        super().__init__(reason.reason)
        self.reason, self.resumable = reason, resumable


class Asked(Exception):
    """Nobody is there to answer."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.text)
        self.question = question
