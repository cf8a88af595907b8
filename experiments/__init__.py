"""Experiments built on loopkit. A folder `experiments` elsewhere on Python's path adds its own."""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
