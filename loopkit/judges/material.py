"""What is judged: the whole package, not only the part that comes first."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Material:
    """A candidate as checks and judges see it: its main text, the files beside it, and what its writer was asked and says."""

    main: str
    """The text that is judged."""
    name: str = "main.md"
    """The name of the main file."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Text of the files beside it, by path relative to the main file."""
    others: tuple[str, ...] = ()
    """Paths of what is beside it and has no text here: images, files too large."""
    goal: str = ""
    """What was asked for."""
    plan: str = ""
    """What the writer had been told to write."""
    notes: str = ""
    """What the writer says of it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "others", tuple(self.others))
        if posixpath.normpath(self.name) in map(posixpath.normpath, self.files):
            raise ValueError(f"a file beside the main one must have another name than {self.name!r}")

    @classmethod
    def of(cls, candidate: Any) -> "Material":
        """`candidate` as a Material: a Material, a text, or a mapping with `main`, and `files` and `notes` if it has them.

        Goal, plan and the main file's name are not the candidate's to say: make a Material for them. Raises TypeError for
        anything else.
        """
        if isinstance(candidate, Material):
            return candidate
        if isinstance(candidate, str):
            return cls(main=candidate)
        if isinstance(candidate, Mapping) and {"main"} <= candidate.keys() <= {"main", "files", "notes"}:
            return cls(**candidate)
        kind = (
            f"mapping with {sorted(map(str, candidate))}"
            if isinstance(candidate, Mapping)
            else type(candidate).__name__
        )
        raise TypeError(
            f"cannot judge a {kind}: give a Material, a text, or a mapping with `main` (and `files`, `notes`)"
        )

    @classmethod
    def read(cls, path: str | Path, **fields: Any) -> "Material":
        """The file at `path`, and as `files` all other text files in its folder and below. `fields` are goal, plan, notes.

        Hidden files are left out; those that are not UTF-8 or over 1 MB are `others`. Raises OSError or UnicodeDecodeError when
        the main file itself cannot be read.
        """
        path = Path(path)
        files, others = {}, []
        for other in sorted(path.parent.rglob("*")):
            relative = other.relative_to(path.parent)
            hidden = any(part.startswith(".") for part in relative.parts)
            if other == path or hidden or not other.is_file():
                continue
            if (text := _text(other)) is None:
                others.append(relative.as_posix())
            else:
                files[relative.as_posix()] = text
        return cls(
            main=path.read_text(encoding="utf-8"), name=path.name, files=files, others=others, **fields
        )

    def texts(self) -> dict[str, str]:
        """All that may be quoted as evidence, by where it stands: the main text and the files."""
        return {self.name: self.main, **self.files}


def _text(path: Path) -> str | None:
    if path.stat().st_size > 1_000_000:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
