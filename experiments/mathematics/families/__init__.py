"""Families of problems, one module for each topic."""
