"""Judging skill files: a labelled set, made by planting defects in clean texts (`planting.py`)."""
