"""A small software factory as a flow: the graph is `factory.yaml`, what its code steps do is `factory.py`."""
