"""Whether the runtime that a target names has what a model file needs."""

from packaging.requirements import Requirement
from packaging.version import Version

from edgebert.pipeline.artifact import ModelInfo
from edgebert.pipeline.schemes import SchemeError
from edgebert.targets import Target

# LiteRT counts its versions anew: TensorFlow Lite's say nothing of it. GPU builds are alike.
COMPARABLE = {
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    "TensorFlow Lite": ("tflite-runtime",),
}


def check_runtime(info: ModelInfo, target: Target) -> None:
    """Refuse a file that no runtime of the target's requirement is new enough for.

    Raises:
        SchemeError: none is.
    """
    runtime, _, needed = info.minimum_runtime.rpartition(" ")
    requirement = Requirement(target.table(info.format).runtime)
    if not needed or requirement.name not in COMPARABLE.get(runtime, ()):
        return
    named = [Version(specifier.version) for specifier in requirement.specifier]
    enough = [version for version in (Version(needed), *named) if version >= Version(needed)]
    if not any(map(requirement.specifier.contains, enough)):
        raise SchemeError(
            f"{info.scheme} needs {info.minimum_runtime}, and the target has {requirement}",
            f"target {target.name}",
        )
