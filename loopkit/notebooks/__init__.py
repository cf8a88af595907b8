"""Notebooks as code: read, cleaned and asked for their parameters, without executing them.

`reading` gives a valid notebook or an error that names the file, `cleaning` takes out what running and saving left
in it, `parameters` tells what may be set and to what, `importing` finds the `Params` that checks it.
"""

from loopkit.notebooks.cleaning import check, clean
from loopkit.notebooks.importing import experiments_beside, params_model
from loopkit.notebooks.parameters import Parameter, assignments, parameters
from loopkit.notebooks.reading import NotebookError, notebooks_in, read

__all__ = [
    "NotebookError",
    "Parameter",
    "assignments",
    "check",
    "clean",
    "experiments_beside",
    "notebooks_in",
    "parameters",
    "params_model",
    "read",
]
