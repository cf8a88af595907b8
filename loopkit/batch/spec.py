"""What a batch is: read from YAML, checked in full before anything runs."""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from loopkit.batch.claims import Claim
from loopkit.batch.worker import Failure
from loopkit.notebooks import NotebookError, assignments, experiments_beside


class SpecError(ValueError):
    """A batch file, or an override, that cannot be run as it stands. The message lists everything that is wrong."""


class BatchSpec(BaseModel):
    """A batch file. `grid` is a list of blocks; each block's lists are multiplied out, its other values are fixed."""

    model_config = ConfigDict(extra="forbid")

    experiment: str
    """A package under `experiments`. Its `Params` (a pydantic model) checks every cell, its `trials(params)` lists them."""
    notebook: Path
    """Relative to the batch file."""
    question: str
    fixed: dict[str, Any] = {}
    """Parameters that all cells share."""
    grid: list[dict[str, Any]] = Field(min_length=1)
    claims: list[Claim] = []
    group_by: list[str] = []
    """Parameters that split the summary's `groups`, beside experiment, arm and model."""
    timeout: int = Field(default=3600, gt=0)
    """Seconds a cell of the notebook may take."""
    notebook_timeout: int | None = Field(default=None, gt=0)
    """Seconds the whole notebook may take."""
    memory: int | None = Field(default=None, ge=256)
    """MiB that a notebook's kernel may take for its data, libraries included (some 200)."""
    retries: dict[Failure, Annotated[int, Field(ge=0, le=10)]] = {"dead_kernel": 1, "dead_worker": 1}
    """How often a notebook that ended so is tried again; what it has recorded is not done again."""

    @model_validator(mode="after")
    def _sound_claims(self) -> "BatchSpec":
        ids = [claim.id for claim in self.claims]
        if twice := sorted({name for name in ids if ids.count(name) > 1}):
            raise ValueError(f"claims need ids of their own, found twice: {', '.join(twice)}")
        if vacuous := [f"claim {claim.id!r} {why}" for claim in self.claims if (why := claim.vacuous)]:
            raise ValueError("; ".join(vacuous))
        return self


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One notebook to execute: a point of the grid."""

    id: str
    params: dict[str, Any]
    keys: tuple[str, ...]
    """Of the trials it will record."""


def load_spec(path: str | Path, overrides: Sequence[str] = ()) -> BatchSpec:
    """Read a batch file and apply overrides such as `count=5` or `arm=[clauses]` (values are YAML).

    An override replaces that parameter in every block of the grid and among the fixed ones. Raises SpecError.
    """
    path = Path(path)
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that is none is a ValueError
        raise SpecError(f"{path} is not YAML: {error}") from error
    if not isinstance(data, dict):
        raise SpecError(
            f"{path} must hold a mapping (experiment:, notebook:, grid:, …), found {type(data).__name__}"
        )
    try:
        spec = BatchSpec.model_validate(data)
    except ValidationError as error:
        raise SpecError(f"{path}: {_problems(error)}") from error
    try:
        spec.notebook = (path.parent / spec.notebook).resolve()
    except ValueError as error:
        raise SpecError(f"{path}: notebook {str(spec.notebook)!r} is no path: {error}") from error
    for name, value in map(_override, overrides):
        blocks = [block for block in spec.grid if name in block]
        if not blocks and isinstance(value, list):
            blocks = spec.grid  # a new axis
        for block in blocks:
            block[name] = value
        if not blocks:
            spec.fixed[name] = value
    return spec


def expand(spec: BatchSpec) -> list[Cell]:
    """All cells of the grid, each checked by the experiment's `Params` and against the notebook's own parameters.

    Claims and `group_by` may name these parameters and whatever else the trials have among theirs. Raises SpecError listing every parameter that is unknown or has a wrong value, before any kernel starts.
    """
    experiment = find_experiment(spec.experiment, spec.notebook)
    model = experiment.Params
    known = notebook_parameters(spec.notebook) - {"out"}  # where records go is the runner's to say
    problems = [
        f"the notebook {spec.notebook} has a parameter {name!r} that experiments.{spec.experiment}.Params lacks"
        for name in sorted(known - set(model.model_fields))
    ]
    tellable = set(known)  # what claims and groups can tell trials apart by
    cells: dict[tuple[str, ...], Cell] = {}
    for block in spec.grid:
        lists = [value if isinstance(value, list) else [value] for value in block.values()]
        problems += [f"{name} is an empty list" for name, value in block.items() if value == []]
        for values in itertools.product(*lists):
            params = spec.fixed | dict(zip(block, values, strict=True))
            if unknown := sorted(set(params) - known):
                problems.append(
                    f"unknown parameter {', '.join(map(repr, unknown))}; there are {', '.join(sorted(known))}"
                )
                continue
            try:
                checked = model.model_validate(params)
                trials = experiment.trials(checked)
                cell = _cell(checked, tuple(trial.key for trial in trials))
                tellable.update(*(trial.params for trial in trials))
            except ValidationError as error:
                problems.append(_problems(error))
            except ValueError as error:  # the experiment's own word: a data file with bad lines, say
                problems.append(str(error))
            else:
                cells.setdefault(cell.keys, cell)  # an override may make two blocks stand for the same trials
    asked = {*spec.group_by, *(key for claim in spec.claims for key in (*claim.where, *claim.over_where))}
    if cells and (strange := sorted(asked - tellable)):
        problems.append(
            f"claims and group_by name {', '.join(strange)}; there are {', '.join(sorted(tellable))}"
        )
    if problems:
        raise SpecError("; ".join(dict.fromkeys(problems)))
    return list(cells.values())


def notebook_parameters(path: Path) -> set[str]:
    """The names that the notebook's `parameters` cell assigns. Raises SpecError when there is no such notebook or cell."""
    try:
        return set(assignments(path))
    except NotebookError as error:
        raise SpecError(str(error)) from error


def trial_keys(experiment: str, notebook: Path, params: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of a cell's trials, by the experiment's code and the data that are here."""
    module = find_experiment(experiment, notebook)
    return tuple(trial.key for trial in module.trials(module.Params.model_validate(params)))


def find_experiment(name: str, notebook: Path) -> Any:
    """The package `experiments.<name>`: one that Python finds, or one beside the notebook. Raises SpecError."""
    try:
        home = experiments_beside(notebook)
        experiment = import_module(f"experiments.{name}")
    except ModuleNotFoundError as error:
        raise SpecError(f"no experiment {name!r}: {error}") from error
    if missing := [need for need in ("Params", "trials") if not hasattr(experiment, need)]:
        raise SpecError(f"experiments.{name} lacks {' and '.join(missing)}")
    if home and (home / name).is_dir():
        found = Path(experiment.__file__).parent
        if not found.samefile(home / name):
            raise SpecError(f"experiments.{name} is {found} here: give {home / name} another name")
    return experiment


def _cell(params: BaseModel, keys: tuple[str, ...]) -> Cell:
    plain = params.model_dump(mode="json")
    digest = sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:8]
    words = [str(plain[name]) for name in ("arm", "model") if name in plain]
    label = "-".join(re.sub(r"\W+", "_", word) for word in words)
    return Cell(id=f"{label or 'cell'}-{digest}", params=plain, keys=keys)


def _override(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise SpecError(f"an override reads name=value, got {text!r}")
    try:
        return name, yaml.safe_load(value)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SpecError(f"override {text!r}: {value!r} is not YAML") from error


def _problems(error: ValidationError) -> str:
    def line(problem: Mapping[str, Any]) -> str:
        place = ".".join(map(str, problem["loc"])) or "the whole"
        shown = "" if problem["type"] in {"missing", "extra_forbidden"} else f", got {problem['input']!r}"
        return f"{place}: {problem['msg'].removeprefix('Value error, ')}{shown}"

    return "; ".join(line(problem) for problem in error.errors())
