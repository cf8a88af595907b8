"""The checks that come with loopkit, and how to name them and one's own in YAML.

checks = [front_matter().vetoing(), length(max_words=400), Check("no-todo", lambda material: "TODO" not in material.main)]
for result in run_checks(checks, Material.read("SKILL.md")):
    print(result.name, result.passed, *result.problems)
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from loopkit.judges.built_in import (
    front_matter,
    length,
    markdown_well_formed,
    numbers_within,
    parses,
    references_exist,
    required_fields,
    speaks_to_no_judge,
    usage_trigger,
)  # fmt: skip
from loopkit.judges.checking import Check, CheckResult, Problem, run_checks, share

__all__ = [
    "CHECKS", "Check", "CheckResult", "Problem", "check_named", "checks_from", "front_matter", "length",
    "markdown_well_formed", "numbers_within", "parses", "references_exist", "register", "required_fields",
    "run_checks", "share", "skill_checks", "speaks_to_no_judge", "usage_trigger",
]  # fmt: skip


def skill_checks(*, max_lines: int = 500, max_words: int | None = None) -> list[Check]:
    """The checks for the file of an agent's skill and what is beside it.

    What makes it useless is a veto: front matter that cannot be read or has no name or description, a file that is not
    there, code that does not parse. A `temperature` in the front matter must be one that a model takes (0 to 2).
    """
    return [
        front_matter().vetoing(),
        required_fields("name", "description").vetoing(),
        usage_trigger(),
        length(max_lines=max_lines, max_words=max_words),
        references_exist().vetoing(),
        markdown_well_formed(),
        parses().vetoing(),
        numbers_within("temperature", low=0, high=2),
    ]


CHECKS: dict[str, Callable[..., Check]] = {
    factory.__name__: factory
    for factory in (
        front_matter,
        required_fields,
        usage_trigger,
        length,
        references_exist,
        markdown_well_formed,
        parses,
        numbers_within,
        speaks_to_no_judge,
    )
}
"""What makes a check, by the name that a YAML file calls it."""


def register(name: str, test: Callable[..., Any] | None = None) -> Any:
    """Let a check of one's own be named in YAML: `register("no-todo", lambda material: "TODO" not in material.main)`.

    Also a decorator: `@register("no-todo")`. What the test takes besides the Material are the check's options. Returns the
    test. Raises ValueError for a name that is taken.
    """
    if test is None:
        return partial(register, name)
    if name in CHECKS:
        raise ValueError(f"there is a check {name!r} already: register yours under another name")

    def factory(*arguments: Any, **options: Any) -> Check:
        return Check(name, lambda material: test(material, *arguments, **options))

    options = list(inspect.signature(test).parameters.values())[1:]
    factory.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    CHECKS[name] = factory
    return test


def check_named(name: str, *arguments: Any, veto: bool = False, **options: Any) -> Check:
    """The check that is registered as `name`. Raises ValueError for a name or an option that there is not."""
    if name not in CHECKS:
        raise ValueError(f"no check {name!r}; there are {', '.join(sorted(CHECKS))}")
    factory = CHECKS[name]
    signature = inspect.signature(factory)
    try:
        signature.bind(*arguments, **options)
    except TypeError as error:
        takes = ", ".join(signature.parameters) or "nothing"
        raise ValueError(f"check {name!r}: {error}; it takes {takes}") from error
    check = factory(*arguments, **options)
    return check.vetoing() if veto else check


def checks_from(entries: Iterable[str | Mapping[str, Any] | Check]) -> list[Check]:
    """The checks that a list in YAML names: `[front_matter, {length: {max_lines: 120}}, {parses: {veto: true}}]`.

    A check's options are a mapping, or a list where they have no names: `{required_fields: [name, description]}`. `veto: true`
    stands among them or beside the check's name. Raises ValueError for what names no check.
    """
    checks = []
    for entry in entries:
        if isinstance(entry, Check):
            checks.append(entry)
        elif isinstance(entry, str):
            checks.append(check_named(entry))
        else:
            checks.append(_from_mapping(entry))
    return checks


def _from_mapping(entry: Any) -> Check:
    beside = dict(entry) if isinstance(entry, Mapping) else {}
    veto = beside.pop("veto", False)
    if len(beside) != 1:
        raise ValueError(f"a check is a name, or `name: options`, got {entry!r}")
    [(name, options)] = beside.items()
    if isinstance(options, Mapping):
        options = {"veto": veto, **options}
        arguments: Sequence[Any] = ()
    else:
        arguments = options if isinstance(options, list) else [] if options is None else [options]
        options = {"veto": veto}
    if not isinstance(options["veto"], bool):
        raise ValueError(f"check {name!r}: veto must be true or false, got {options['veto']!r}")
    return check_named(name, *arguments, **options)
