"""A notebook's parameters: what its `parameters` cell assigns, and what the model that checks them says of each."""

import ast
import io
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopkit.notebooks.importing import params_model
from loopkit.notebooks.reading import NotebookError, read
from loopkit.notebooks.wording import in_words


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """One parameter, as the `parameters` cell assigns it."""

    written: str
    """Its default, in Python."""
    literal: bool
    """Whether the default can be told without executing anything."""
    value: Any
    """The default; None also where it is no literal."""
    annotation: str | None
    comment: str
    """What stands behind it, on its last line."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """What may be set, and to what."""

    name: str
    type: str
    """In words, with constraints: `int 1 to 20`. Without a model the annotation, else the type of the default."""
    written: str
    """The notebook's default, in Python."""
    default: Any
    """The notebook's default; None also where it is no literal."""
    help: str
    """The docstring of the model's field, else the comment behind the assignment."""
    model: str | None
    """Who checks it, such as `experiments.knights.Params`; None where nobody does."""
    schema: Mapping[str, Any] | None
    """The JSON schema of the model's field; its `default` is what a batch takes that does not say."""


def assignments(path: str | Path) -> dict[str, Assignment]:
    """What the cell tagged `parameters` assigns, by name. Raises NotebookError when there is no such notebook or cell."""
    tagged = [
        cell
        for cell in read(path).cells
        if cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", [])
    ]
    source = tagged[0].source if tagged else ""
    try:
        lines = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotebookError(f"the parameters cell of {path} is not plain Python: {error}") from error
    comments = _comments(source)
    found = {}
    for line in lines:
        match line:
            case ast.Assign(targets=targets, value=value):
                names, annotation = [one.id for one in targets if isinstance(one, ast.Name)], None
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value):
                names = [name]
            case _:
                continue
        literal, default = _evaluated(value)
        one = Assignment(
            written=ast.unparse(value),
            literal=literal,
            value=default,
            annotation=annotation and ast.unparse(annotation),
            comment=comments.get(line.end_lineno, ""),
        )
        found |= dict.fromkeys(names, one)
    if not found:
        raise NotebookError(f"the notebook {path} has no cell tagged 'parameters' with assignments in it")
    return found


def _evaluated(value: ast.expr) -> tuple[bool, Any]:
    """Whether it is a literal, and which."""
    try:
        return True, ast.literal_eval(value)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return False, None


def _comments(source: str) -> dict[int, str]:
    """The comments, by line."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {one.start[0]: one.string.lstrip("#").strip() for one in tokens if one.type == tokenize.COMMENT}


def parameters(path: str | Path) -> list[Parameter]:
    """The notebook's parameters, in order. Raises NotebookError, also when the model that checks them cannot be had."""
    from pydantic.errors import PydanticUserError

    assigned, model = assignments(path), params_model(path)
    try:
        schema = model.model_json_schema(by_alias=False) if model else {}
    except PydanticUserError as error:
        raise NotebookError(f"the Params of {path} have no JSON schema: {error.message}") from error
    fields, definitions = schema.get("properties", {}), schema.get("$defs", {})

    def told(name: str, one: Assignment) -> Parameter:
        field = fields.get(name)
        said = (field or {}).get("description", one.comment)
        return Parameter(
            name=name,
            type=_type(one) if field is None else in_words(field, definitions),
            written=one.written,
            default=one.value,
            help=" ".join(said.split()),
            model=f"{model.__module__}.{model.__name__}" if model and field is not None else None,
            schema=field,
        )

    return [told(name, one) for name, one in assigned.items()]


def _type(one: Assignment) -> str:
    """Without a model."""
    if one.annotation:
        return one.annotation
    if not one.literal:
        return "expression"
    return "None" if one.value is None else type(one.value).__name__
