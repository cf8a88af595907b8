"""Claims: `claim` is the vocabulary, `findings` hold trials against one claim (by `sides`, in the words of `wording`),
`adjudicating` gives the verdicts on all claims of a batch together."""

from loopkit.batch.claims.adjudicating import adjudicate, simulated
from loopkit.batch.claims.claim import Claim
from loopkit.batch.claims.sides import average

__all__ = ["Claim", "adjudicate", "average", "simulated"]
