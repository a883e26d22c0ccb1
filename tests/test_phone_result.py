"""The types of a phone's result and android_demo/measurement.schema.json say the same.

The results in data/phone are what the tests of android_demo/core leave in core/target.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from edgebert.pipeline.phone_result import PhoneResult

ROOT = Path(__file__).parent
SAMPLES = sorted((ROOT / "data/phone").glob("*.json"))
SCHEMA = ROOT.parent / "android_demo/measurement.schema.json"
BOUNDS = ("pattern", "minimum", "maxItems")


def outline(node: dict[str, Any], root: dict[str, Any]) -> Any:
    """A schema without what does not decide which documents it takes, in one spelling."""
    if not node:
        return {"types": []}
    while "$ref" in node:
        node = root["$defs"][node["$ref"].rpartition("/")[2]]
    choices = node.get("oneOf") or node.get("anyOf")
    if choices:
        found = [outline(choice, root) for choice in choices]
        objects = [one for one in found if "properties" in one]
        plain = [one for one in found if "properties" not in one]
        merged: dict[str, Any] = {"types": sorted({t for one in plain for t in one["types"]})}
        for one in plain:
            merged |= {key: value for key, value in one.items() if key != "types"}
        if objects:
            merged["objects"] = sorted(objects, key=lambda one: sorted(one["properties"]))
        return merged if plain or len(objects) > 1 else objects[0]
    kind = node.get("type", [])
    values = node.get("enum", [node["const"]] if "const" in node else [])
    names = {str: "string", int: "integer", type(None): "null"}
    types = {kind} if isinstance(kind, str) else set(kind)
    types |= {names[type(value)] for value in values}
    here: dict[str, Any] = {"types": sorted(types)}
    if values:
        here["values"] = sorted(value for value in values if value is not None)
    here |= {key: node[key] for key in BOUNDS if key in node}
    items = outline(node.get("items", {}), root)
    if any(items.values()):  # where they may be anything, the schema leaves them out
        here["items"] = items
    if "properties" in node:
        assert node["additionalProperties"] is False
        required = node["required"]
        here["properties"] = {
            name: outline(child, root) for name, child in node["properties"].items()
        }
        for name in set(node["properties"]) - set(required):  # left out, and never null
            types = here["properties"][name]["types"]
            here["properties"][name]["types"] = [kind for kind in types if kind != "null"]
        here["required"] = sorted(required)
    return here


def test_the_types_are_the_schema() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    types = PhoneResult.model_json_schema()
    assert outline(types, types) == outline(schema, schema)
    assert schema["dependentRequired"] == {"error": ["code"], "code": ["error"]}


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.stem)
def test_what_the_app_wrote(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    result = PhoneResult.model_validate_json(text)
    assert json.loads(result.model_dump_json(exclude_unset=True)) == json.loads(text)
    assert result.kind == {"measurement": "measure", "failed": "golden"}.get(file.stem, file.stem)
    assert bool(result.runs) == (file.stem == "measurement")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"schema_version": 2}, "schema_version"),
        ({"extra": 1}, "extra"),
        ({"error": "too hot"}, "come together"),
        ({"valid": "true"}, "valid"),
        ({"bundle": "0" * 63}, "bundle"),
        ({"started_at": "yesterday"}, "started_at"),
        ({"answers": [{"file": "model.onnx"}]}, "answers.0.run.file_sha256"),
        ({"device": {"kind": "tablet"}}, "device.kind"),
    ],
)
def test_another_form(change: dict[str, Any], field: str) -> None:
    (file,) = (file for file in SAMPLES if file.stem == "measurement")
    data = json.loads(file.read_text(encoding="utf-8")) | change
    with pytest.raises(ValidationError, match=field):
        PhoneResult.model_validate_json(json.dumps(data))
