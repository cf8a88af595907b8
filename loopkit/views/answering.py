"""A form in a notebook for what a run of a flow asks a person."""

import html
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from loopkit.flow import Flow
from loopkit.log import StoreError
from loopkit.store import Store

if TYPE_CHECKING:
    import ipywidgets


def answer_form(store: Store, run: str, *, then: Callable[[], Any] | None = None) -> "ipywidgets.Widget":
    """The question that `run` waits with, a field for each part of the answer, and a button that records it.

    The run goes on when it is resumed: `await Flow.of(log).run(log=log)` with `log = store.resume(run)`. `then()` is
    called after the answer was recorded. Raises ValueError when the run asks nothing, StoreError when it is not there.
    """
    import ipywidgets

    record = store.run(run)
    if record.status != "waiting":
        raise ValueError(f"run {run!r} asks nobody anything (it is {record.status})")
    asked = record.all("question")[-1]
    schema = asked["schema"]
    parts = {name: _resolved(part, schema) for name, part in schema.get("properties", {}).items()}
    fields = {name: _field(name, part) for name, part in parts.items()}
    button = ipywidgets.Button(description="Answer", button_style="primary")
    said = ipywidgets.HTML()

    def answer(_: Any) -> None:
        try:
            typed = {name: _value(part, fields[name].value) for name, part in parts.items()}
            said_so = {name: value for name, value in typed.items() if value is not None}
            with store.resume(run) as log:
                Flow.of(log).answer(log, said_so)
        except (StoreError, ValueError) as error:
            said.value = f"<b>Not recorded.</b> {html.escape(str(error))}"
            return
        for widget in (*fields.values(), button):
            widget.disabled = True
        said.value = f"Recorded. Resume run <code>{html.escape(run)}</code> to go on."
        if then:
            then()

    button.on_click(answer)
    question = ipywidgets.HTML(f"<b>{html.escape(asked['step'])}</b><p>{html.escape(asked['text'])}</p>")
    return ipywidgets.VBox([question, *fields.values(), button, said])


def _resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The part itself, what its `$ref` names, or what it is when it is not left out; then it is `optional`."""
    if "$ref" in part:
        return schema["$defs"][part["$ref"].rpartition("/")[2]]
    if "anyOf" in part:
        given = next(one for one in part["anyOf"] if one.get("type") != "null")
        return _resolved(given, schema) | {"optional": True}
    return part


def _value(part: dict[str, Any], value: Any) -> Any:
    """What was typed in: lists, objects and optional numbers as JSON; None for what was left out."""
    if part.get("optional") and value == "":
        return None
    as_json = part.get("type") in ("array", "object") or (
        part.get("optional") and part.get("type") != "string"
    )
    return json.loads(value) if as_json and isinstance(value, str) and "enum" not in part else value


def _field(name: str, part: dict[str, Any]) -> "ipywidgets.Widget":
    import ipywidgets

    label = {"description": name, "style": {"description_width": "initial"}}
    options = part.get("enum") or ([part["const"]] if "const" in part else [])
    if options:
        left_out = [("–", "")] if part.get("optional") else []
        return ipywidgets.ToggleButtons(options=[*left_out, *((str(one), one) for one in options)], **label)
    if part.get("optional"):
        return ipywidgets.Textarea(rows=1, placeholder="may be left out", **label)
    match part.get("type"):
        case "boolean":
            return ipywidgets.Checkbox(value=False, indent=False, **label)
        case "integer":
            return ipywidgets.IntText(value=part.get("minimum", 0), **label)
        case "number":
            return ipywidgets.FloatText(value=part.get("minimum", 0.0), **label)
    return ipywidgets.Textarea(rows=2, **label)
