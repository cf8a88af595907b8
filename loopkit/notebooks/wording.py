"""A JSON schema in a few words of Python: `int 1 to 20`, `seen | unseen`, `int >= 0 | None`."""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

NAMES = {
    "array": "list",
    "boolean": "bool",
    "integer": "int",
    "null": "None",
    "number": "float",
    "object": "dict",
    "string": "str",
}
LIMITS = {  # by their unit
    "": {">=": "minimum", ">": "exclusiveMinimum", "<=": "maximum", "<": "exclusiveMaximum"},
    "characters": {">=": "minLength", "<=": "maxLength"},
    "items": {">=": "minItems", "<=": "maxItems"},
}


def in_words(schema: Schema, definitions: Mapping[str, Schema]) -> str:
    """The type that `schema` allows, with its constraints. `definitions` holds what its `$ref`s name."""
    if "$ref" in schema:
        return in_words(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(in_words(one, definitions) for one in schema[several]))
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    kind = schema.get("type")
    words = [NAMES.get(kind, "any")]
    if kind == "array" and "items" in schema:
        words.append(f"of {in_words(schema['items'], definitions)}")
    words += [_limits(schema, signs, unit) for unit, signs in LIMITS.items()]
    if "multipleOf" in schema:
        words.append(f"multiple of {schema['multipleOf']}")
    if "pattern" in schema:
        words.append(f"matching {schema['pattern']}")
    return " ".join(filter(None, words))


def _limits(schema: Schema, signs: Mapping[str, str], unit: str) -> str:
    """`1 to 20`, `>= 1`, `> 0 < 1`, with the unit; nothing where there is no limit."""
    there = {sign: schema[key] for sign, key in signs.items() if key in schema}
    if there.keys() == {">=", "<="}:
        said = f"{there['>=']} to {there['<=']}"
    else:
        said = " ".join(f"{sign} {limit}" for sign, limit in there.items())
    return f"{said} {unit}" if said and unit else said
