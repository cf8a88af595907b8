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
            said_so = {name: _value(part, fields[name].value) for name, part in parts.items()}
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
    """The part itself, or what its `$ref` names."""
    return schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part


def _value(part: dict[str, Any], value: Any) -> Any:
    """Lists and objects are typed in as JSON."""
    return json.loads(value) if part.get("type") in ("array", "object") else value


def _field(name: str, part: dict[str, Any]) -> "ipywidgets.Widget":
    import ipywidgets

    label = {"description": name, "style": {"description_width": "initial"}}
    if "enum" in part:
        return ipywidgets.ToggleButtons(options=part["enum"], **label)
    if "const" in part:
        return ipywidgets.ToggleButtons(options=[part["const"]], **label)
    match part.get("type"):
        case "boolean":
            return ipywidgets.Checkbox(value=False, indent=False, **label)
        case "integer":
            return ipywidgets.IntText(value=part.get("minimum", 0), **label)
        case "number":
            return ipywidgets.FloatText(value=part.get("minimum", 0.0), **label)
    return ipywidgets.Textarea(rows=2, **label)
