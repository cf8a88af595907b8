"""A claim: a sentence made testable, in the vocabulary of a batch file."""

import json
from hashlib import sha256
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

COMPARED = ("over", "under", "same_as")
KINDS = (*COMPARED, "at_least", "at_most", "equals")
ACCURACY = "accuracy"

Number = Annotated[float, Field(allow_inf_nan=False)]


class Claim(BaseModel):
    """A sentence made testable, declared before the run. Give exactly one of `KINDS`.

    A comparison is of two arms on the same items at the same seed. The item is the unit throughout: trials that repeat
    an item under several seeds make its value surer, and not more of it.
    """

    model_config = ConfigDict(extra="forbid")

    id: str
    says: str
    arm: str
    """The arm the claim is about."""
    where: dict[str, Any] = {}
    """Which trials count: parameter = value, or a list of values."""
    measure: str = ACCURACY
    """What is compared: `accuracy` (right or not), `iterations`, `tokens`, `seconds` or one of `Result.measures`."""
    over: str | None = None
    """Another arm (or the same under another model, see `over_where`): `arm` has more."""
    under: str | None = None
    """Another arm: `arm` has less."""
    same_as: str | None = None
    """Another arm: the whole 95 % interval of the difference lies within ± `margin`."""
    over_where: dict[str, Any] = {}
    """For comparisons: what differs from `where` for the other arm."""
    p_below: float = Field(default=0.05, gt=0, lt=1)
    """For `over` and `under`: what p must be below, after Holm's correction over the claims of the batch."""
    margin: Number | None = Field(default=None, gt=0)
    """For `same_as`, in the unit of the measure; of `accuracy` 0.05 are 5 points of percentage."""
    at_least: Number | None = None
    """The whole 95 % interval of the mean (or share) lies at or above this."""
    at_most: Number | None = None
    """The whole 95 % interval of the mean (or share) lies at or below this."""
    equals: Number | None = None
    """Every single trial has exactly this value; with `within`, the whole 95 % interval of the mean lies so near to it."""
    within: Number | None = Field(default=None, gt=0)
    """For `equals`, in the unit of the measure."""

    @field_validator("at_least", "at_most", "equals")
    @classmethod
    def _share(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("measure") == ACCURACY and not 0 <= value <= 1:
            raise ValueError("an accuracy lies between 0 and 1")
        return value

    @model_validator(mode="after")
    def _one_kind(self) -> "Claim":
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"claim {self.id!r} must have exactly one of {', '.join(KINDS)}")
        if self.over_where and self.other is None:
            raise ValueError(f"claim {self.id!r} has over_where but none of {', '.join(COMPARED)}")
        if (self.margin is None) != (self.same_as is None):
            raise ValueError(f"claim {self.id!r} must have same_as and margin together, or neither")
        if self.within is not None and self.equals is None:
            raise ValueError(f"claim {self.id!r} has within but no equals")
        return self

    @property
    def vacuous(self) -> str | None:
        """Why the terms say nothing, or less than they seem to; None if all is well.

        A batch file with such a claim is refused. That is not for the claim to do: earlier logs hold some.
        """
        if self.other == self.arm and self.where | self.over_where == self.where:
            return f"compares {self.arm} with itself: name another arm, or let over_where change something"
        if self.p_below != Claim.model_fields["p_below"].default and self.over is None and self.under is None:
            return f"has p_below {self.p_below:g}, but only over and under have a p: leave it out"
        if self.measure != ACCURACY:
            return None
        for name, value in (("margin", self.margin), ("within", self.within)):
            if value is not None and value >= 1:
                return f"has a {name} of {value:g}, which no accuracy goes beyond: 0.05 are 5 points"
        if self.at_least == 0 or self.at_most == 1:
            return "has a bound that every accuracy keeps to: at_least must be above 0, at_most below 1"
        return None

    @property
    def other(self) -> str | None:
        """The arm that `arm` is compared with; None for a claim about one arm."""
        return next((arm for kind in COMPARED if (arm := getattr(self, kind)) is not None), None)

    @property
    def digest(self) -> str:
        """SHA-256 over the terms, as 64 hex digits: what is tested, and nothing of how it is told.

        `id` and `says` are left out: another name or a better sentence for the same test is no new claim. So are terms
        that have their default value, which keeps the digest of a claim when the vocabulary grows.
        """
        terms = self.model_dump(mode="json", exclude={"id", "says"}, exclude_defaults=True)
        return sha256(json.dumps(terms, sort_keys=True).encode()).hexdigest()
