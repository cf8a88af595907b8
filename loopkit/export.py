"""Frames from rows, and as files: CSV, JSON or Parquet, by the file's name."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopkit.log import encode

if TYPE_CHECKING:
    import pandas as pd

Columns = dict[str, list[Any]]


def to_frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> "pd.DataFrame":
    """A frame of `rows`, whatever their texts hold."""
    import pandas as pd

    # Where pyarrow is installed pandas keeps text in it, and it refuses lone surrogates, which models do emit.
    with pd.option_context("mode.string_storage", "python"):
        return pd.DataFrame(rows, columns=columns)


def check_export(path: str | Path) -> Path:
    """`path`, if a frame can be exported to it. Raises ValueError for another suffix, or .parquet without pyarrow."""
    path = Path(path)
    if path.suffix not in WRITERS:
        raise ValueError(f"cannot export to {str(path)!r}: name a file that ends in {', '.join(WRITERS)}")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise ValueError(
            f"cannot export to {str(path)!r}: .parquet takes pyarrow, which the extra loopkit[parquet] installs "
            "(in a checkout: pip install -e '.[parquet]'); .csv and .json take nothing more"
        )
    return path


def export(frame: "pd.DataFrame", path: str | Path) -> Path:
    """Write `frame` to `path`, whole or not at all, as its suffix says; return the path. Missing folders are made.

    `.json` is a list of objects, one a line, with null for what is missing. In `.csv` and `.parquet` lists and objects
    are JSON text; a column that mixes kinds is text in `.parquet`. Raises ValueError as `check_export` does, OSError
    when the file cannot be written.
    """
    path = check_export(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".export-") as folder:
        part = Path(folder, path.name)
        WRITERS[path.suffix](_columns(frame), part)
        os.replace(part, path)
    return path


def plain_rows(frame: "pd.DataFrame") -> list[dict[str, Any]]:
    """The rows of a frame by column, as plain data: None for what pandas calls missing."""
    return list(_rows(_columns(frame)))


def _columns(frame: "pd.DataFrame") -> Columns:
    return {str(name): list(map(_plain, frame[name].tolist())) for name in frame.columns}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value


def _rows(columns: Columns) -> Iterator[dict[str, Any]]:
    return (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))


def _csv(columns: Columns, path: Path) -> None:
    import pandas as pd

    text = {name: [_text(one) if _nested(one) else one for one in values] for name, values in columns.items()}
    pd.DataFrame(text, dtype=object).to_csv(path, index=False, encoding="utf-8", errors="backslashreplace")


def _json(columns: Columns, path: Path) -> None:
    path.write_bytes(b"[\n" + b",\n".join(map(encode, _rows(columns))) + b"\n]\n")


def _parquet(columns: Columns, path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    table = {
        name: values if _is_uniform(values) else list(map(_text, values)) for name, values in columns.items()
    }
    parquet.write_table(pyarrow.table(table), path)


WRITERS: dict[str, Callable[[Columns, Path], None]] = {".csv": _csv, ".json": _json, ".parquet": _parquet}


def _nested(value: Any) -> bool:
    return isinstance(value, dict | list | tuple)


def _is_uniform(values: list[Any]) -> bool:
    """Whether a column of Parquet can hold them as they are: numbers of one kind that fit it, or nothing."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int}:
        return all(value is None or -(2**63) <= value < 2**63 for value in values)
    return len(kinds) <= 1 and kinds <= {bool, float}


def _text(value: Any) -> str | None:
    """Text stays; what is nested is JSON. Lone surrogates, which models do emit, are escaped."""
    if value is None:
        return None
    text = value if isinstance(value, str) else encode(value).decode()
    return text.encode("utf-8", "backslashreplace").decode()
