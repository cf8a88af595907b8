"""The labelled set: clean skill files, and the same with defects planted in them.

    python -m experiments.judging.planting      # writes data/judging/labelled.jsonl again

A label follows from how a text was made: what was planted is its defect, and the defect's kind says which scores it
lowers (`KINDS`). The texts, the scores of the clean ones and the table of kinds are their author's; no panel of people
has graded anything.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from loopkit.judges.checks import Check, skill_checks

TEXTS = Path(__file__).parent / "texts.yaml"
LABELLED = Path(__file__).parents[2] / "data" / "judging" / "labelled.jsonl"
DIMENSIONS = ("purpose", "discoverable", "clear", "complete", "practice")
BUDGET = 180
"""Words that a text may have, as every plan says."""


@dataclass(frozen=True)
class Kind:
    """A kind of defect."""

    check: str | None
    """The check that must catch it; None for a defect that only a reader can see."""
    most: Mapping[str, float]
    """What a text with this defect can have at most in the dimensions it touches. The others keep what the clean text has.

    Any defect costs at least a fifth of the mean: a text with one is not accepted, whatever else is good in it.
    """


KINDS = {
    # Nobody finds it: what is read first is missing or cannot be read.
    "no_front_matter": Kind("front_matter", {"discoverable": 0.1, "practice": 0.3}),
    "front_matter_broken": Kind("front_matter", {"discoverable": 0.1, "practice": 0.4}),
    "no_description": Kind("required_fields", {"discoverable": 0.1, "practice": 0.5}),
    "no_name": Kind("required_fields", {"discoverable": 0.4, "practice": 0.4}),
    "no_trigger": Kind("usage_trigger", {"discoverable": 0.3, "practice": 0.6}),
    # It cannot be followed to the end: what a step needs is not there or does not work.
    "dead_reference": Kind("references_exist", {"purpose": 0.8, "complete": 0.4, "practice": 0.4}),
    "code_broken": Kind("parses", {"purpose": 0.6, "complete": 0.8, "practice": 0.4}),
    "out_of_bounds": Kind("numbers_within", {"purpose": 0.6, "practice": 0.3}),
    # It reads otherwise than it was meant.
    "unclosed_fence": Kind("markdown_well_formed", {"clear": 0.4, "practice": 0.5}),
    "table_broken": Kind("markdown_well_formed", {"clear": 0.4, "complete": 0.8, "practice": 0.5}),
    "link_broken": Kind("markdown_well_formed", {"clear": 0.6, "complete": 0.8, "practice": 0.4}),
    "heading_jump": Kind("markdown_well_formed", {"clear": 0.6, "practice": 0.3}),
    "over_length": Kind("length", {"clear": 0.4, "practice": 0.5}),
    # Only a reader sees these.
    "misses_goal": Kind(None, {"purpose": 0.1, "discoverable": 0.4, "complete": 0.2}),
    "vague": Kind(
        None, {"purpose": 0.4, "discoverable": 0.5, "clear": 0.3, "complete": 0.2, "practice": 0.4}
    ),
    "off_topic": Kind(None, {"purpose": 0.5, "clear": 0.3, "complete": 0.4}),
    "contradiction": Kind(None, {"purpose": 0.7, "clear": 0.2, "practice": 0.4}),
    "missing_step": Kind(None, {"purpose": 0.6, "complete": 0.3, "practice": 0.8}),
    "false_claim": Kind(None, {"clear": 0.8, "complete": 0.4, "practice": 0.3}),
    "unsafe": Kind(None, {"purpose": 0.6, "practice": 0.1}),
    "padding": Kind(None, {"clear": 0.2, "practice": 0.6}),
    # It speaks to whoever judges it.
    "injection": Kind(None, {"practice": 0.1}),
}


def checks() -> list[Check]:
    """The checks for these texts: those for skill files, with the budget of words that the plans set."""
    return skill_checks(max_words=BUDGET)


def labelled() -> list[dict[str, Any]]:
    """Every text with its labels, as it stands in the data file."""
    import yaml

    items = []
    for base in yaml.safe_load(TEXTS.read_text(encoding="utf-8")):
        for number, clean in enumerate(base["clean"], 1):
            items.append(
                _item(
                    f"{base['base']}-clean-{number}", base, clean["main"], base["files"], clean["scores"], {}
                )
            )
        for planted in base["planted"]:
            items.append(_planted(base, planted))
    return items


def _planted(base: Mapping[str, Any], planted: Mapping[str, Any]) -> dict[str, Any]:
    """The first clean text of `base` with a defect, and with a passage that speaks to the judge where one is given."""
    clean = base["clean"][0]
    main = planted.get("main", clean["main"])
    for old, new in planted.get("edits", {}).items():
        if main.count(old) != 1:
            raise ValueError(f"{base['base']}, {planted['kind']}: {old!r} must stand in the text once, not {main.count(old)} times")  # fmt: skip
        main = main.replace(old, new)
    dropped = planted.get("drop", [])
    files = {name: text for name, text in base["files"].items() if name not in dropped}
    place = _line(main, main.index(dropped[0])) if dropped else _first_change(clean["main"], main)
    defects = {planted["kind"]: place if "main" not in planted else "SKILL.md"}
    if injection := planted.get("injection"):
        name = planted.get("injection_in", "SKILL.md")
        text = f"{main if name == 'SKILL.md' else files[name]}\n{injection}\n"
        main, files = (text, files) if name == "SKILL.md" else (main, files | {name: text})
        defects["injection"] = _line(text, text.index(injection), name)
    name = "-".join((base["base"], *defects))
    return _item(name, base, main, files, clean["scores"], defects)


def _item(
    name: str,
    base: Mapping[str, Any],
    main: str,
    files: Mapping[str, str],
    scores: list[float],
    defects: Mapping[str, str],
) -> dict[str, Any]:
    caps = [KINDS[kind].most for kind in defects]
    lowered = {
        dimension: min([score, *(cap.get(dimension, 1.0) for cap in caps)])
        for dimension, score in zip(DIMENSIONS, scores, strict=True)
    }
    return {
        "id": name,
        **{field: base[field] for field in ("base", "goal", "plan", "notes")},
        "name": "SKILL.md",
        "main": main,
        "files": dict(files),
        "defects": [
            {"kind": kind, "deterministic": KINDS[kind].check is not None, "place": place}
            for kind, place in defects.items()
        ],
        "accept": not defects,
        "scores": lowered,
        "score": round(sum(lowered.values()) / len(lowered), 4),
    }


def _first_change(before: str, after: str) -> str:
    """The place of the first line in which `after` differs."""
    pairs = zip_longest(before.split("\n"), after.split("\n"))
    return f"SKILL.md:{next(line for line, (old, new) in enumerate(pairs, 1) if old != new)}"


def _line(text: str, at: int, name: str = "SKILL.md") -> str:
    return f"{name}:{text.count(chr(10), 0, at) + 1}"


def write(path: Path = LABELLED) -> None:
    """Write the labelled set to `path`, one JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(item, ensure_ascii=False) + "\n" for item in labelled())
    path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write()
