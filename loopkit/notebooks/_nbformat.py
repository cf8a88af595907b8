"""nbformat, imported in a fraction of the time.

nbformat imports jsonschema, which tries rfc3987_syntax for its optional check of internationalised addresses; that
package builds a parser as it is imported, which takes seconds. Notebooks hold no such addresses: jsonschema goes
without, as it does where the package is not installed.
"""

import sys
from types import ModuleType
from typing import cast

if "jsonschema" not in sys.modules:
    sys.modules.setdefault("rfc3987_syntax", cast(ModuleType, None))  # makes importing it an ImportError

import nbformat

if sys.modules.get("rfc3987_syntax") is None:
    sys.modules.pop("rfc3987_syntax", None)

__all__ = ["nbformat"]
