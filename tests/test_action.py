"""action.yml: its steps run as GitHub runs them, on a tiny model, and say what came out."""

import os
import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")


class Job:
    """A job that has nothing but this action; `edgebert` and its Python are installed.

    Args:
        folder: of the checkout.
        inputs: what the workflow gives the action.
        env: besides the environment of the tests.
    """

    def __init__(self, folder: Path, inputs: dict[str, str], env: dict[str, str]) -> None:
        self.folder = folder
        folder.mkdir()
        defaults = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
        self.values = {f"inputs.{name}": value for name, value in (defaults | inputs).items()}
        scripts = sysconfig.get_path("scripts")
        self.env = {
            **os.environ,
            **env,
            "PATH": f"{scripts}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(folder),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        }

    def evaluate(self, text: str) -> str:
        return EXPRESSION.sub(lambda found: self.values[found[1]], text)

    def run(self) -> dict[str, int]:
        """Exit codes of the shell steps up to the first that fails; pip is not run."""
        codes = {}
        for step in STEPS:
            if "run" not in step or step["name"] == "Install":
                continue
            (self.folder / "output").write_text("")
            env = {name: self.evaluate(value) for name, value in step.get("env", {}).items()}
            # How GitHub runs `shell: bash`.
            words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(
                words, cwd=self.folder, env=self.env | env, capture_output=True, text=True
            )
            codes[step["name"]] = done.returncode
            for line in (self.folder / "output").read_text().splitlines():
                name, _, value = line.partition("=")
                self.values[f"steps.{step['id']}.outputs.{name}"] = value
            if done.returncode:
                self.error = done.stdout + done.stderr
                break
        return codes

    def output(self, name: str) -> str:
        return self.evaluate(ACTION["outputs"][name]["value"])


def test_it_is_a_composite_action_whose_inputs_never_are_shell_code() -> None:
    assert ACTION["runs"]["using"] == "composite"
    used = set()
    for step in STEPS:
        assert "name" in step and ("run" in step) != ("uses" in step)
        if "run" in step:
            assert step["shell"] == "bash"
            assert "${{" not in step["run"]
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
        values = [*step.get("env", {}).values(), *step.get("with", {}).values()]
        used |= {found for value in values for found in EXPRESSION.findall(value)}
    assert {f"inputs.{name}" for name in ACTION["inputs"]} <= used
    for one in ACTION["inputs"].values():
        assert one["description"] and (one.get("required") or "default" in one)


def test_every_script_is_bash() -> None:
    for step in STEPS:
        if "run" in step:
            subprocess.run(["bash", "-n", "-c", step["run"]], check=True)


def test_the_examples_of_the_page_are_yaml_and_name_real_inputs() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    github, gitlab = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.S))
    (use,) = (s for s in github["jobs"]["build"]["steps"] if "edgebert@" in s.get("uses", ""))
    assert set(use["with"]) <= set(ACTION["inputs"])
    assert gitlab["edgebert"]["artifacts"]["reports"]["junit"] == "bundle/junit.xml"
    table = re.findall(r"^\| `([\w-]+)` +\| +`?([^|`]*?)`? +\|", page, re.M)
    defaults = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
    assert {name for name, _ in table} == set(defaults)
    for name, said in table:
        assert said in (defaults[name], "the model's own"), name


@pytest.fixture
def inputs(edgebert: Any) -> dict[str, str]:
    return {
        "model": str(edgebert.model),
        "data": str(edgebert.data),
        "target": "android-arm64",
        "arguments": "--format=onnx\n\n--set=quantize.scheme=dynamic_wi8c_afp32\n--max-drop=0.5\n",
    }


def test_a_build_that_passes(edgebert: Any, inputs: dict[str, str], tmp_path: Path) -> None:
    env = {"EDGEBERT_CACHE": str(edgebert.cache)}
    job = Job(tmp_path / "job", inputs | {"validate-on": "local\n"}, env)
    codes = job.run()
    assert codes == dict.fromkeys(("Build", "Prove", "Summarize", "Verdict"), 0), job.error
    bundle = job.folder / job.output("bundle")
    assert (bundle / "report.html").is_file() and job.output("passed") == "true"
    summary = (job.folder / "summary").read_text(encoding="utf-8")
    assert summary == Path(job.output("summary")).read_text(encoding="utf-8")
    assert "✅ passed" in summary and "| model.onnx | dynamic_wi8c_afp32 |" in summary


def test_a_gate_that_fails_fails_the_job_after_the_summary(
    edgebert: Any, inputs: dict[str, str], tmp_path: Path
) -> None:
    env = {"EDGEBERT_CACHE": str(edgebert.cache)}
    arguments = inputs["arguments"] + "--max-size=0.001\n"
    job = Job(tmp_path / "job", inputs | {"arguments": arguments, "out": "a b"}, env)
    assert job.run() == {"Build": 0, "Prove": 0, "Summarize": 0, "Verdict": 1}
    assert job.output("passed") == "false" and "::error" in job.error
    assert "❌" in (job.folder / "summary").read_text(encoding="utf-8")
    assert (job.folder / "a b" / "junit.xml").is_file()


def test_wrong_input_fails_at_once(edgebert: Any, inputs: dict[str, str], tmp_path: Path) -> None:
    env = {"EDGEBERT_CACHE": str(edgebert.cache)}
    job = Job(tmp_path / "job", inputs | {"target": "$(touch harm)"}, env)
    assert job.run() == {"Build": 2}
    assert not (job.folder / "harm").exists()
