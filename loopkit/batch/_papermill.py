"""papermill, imported as cheaply as `loopkit.notebooks._nbformat` imports what it is built on."""

from loopkit.notebooks import _nbformat as _nbformat  # isort: skip - before papermill imports nbformat
import papermill

__all__ = ["papermill"]
