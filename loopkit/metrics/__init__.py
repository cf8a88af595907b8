"""Numbers with their uncertainty. scipy and statsmodels do the statistics; here they get names and guards.

Fewer than two observations (or clusters; six for `bootstrap`) have no interval: `low` and `high` are None, never the
estimate, never 0.
Neither has data without any spread whose interval would have width 0.
"""

from loopkit.metrics.agreement import kappa, spearman
from loopkit.metrics.intervals import Estimate, bootstrap, mean
from loopkit.metrics.multiple import holm
from loopkit.metrics.paired import Paired, PairedMeans, mcnemar, permutation
from loopkit.metrics.power import n_for_bound, n_for_means, n_for_paired
from loopkit.metrics.proportions import Proportion, accuracy, balanced, clustered
from loopkit.metrics.repeated import pass_at_k, pass_hat_k

__all__ = [
    "Estimate",
    "Paired",
    "PairedMeans",
    "Proportion",
    "accuracy",
    "balanced",
    "bootstrap",
    "clustered",
    "holm",
    "kappa",
    "mcnemar",
    "mean",
    "n_for_bound",
    "n_for_means",
    "n_for_paired",
    "pass_at_k",
    "pass_hat_k",
    "permutation",
    "spearman",
]
