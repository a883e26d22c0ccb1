"""The layers of a model file, measured through the cache."""

from edgebert.calibration import Dataset
from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.layers import LayerReport
from edgebert.pipeline.stage_runs import StageRuns


def run_layers(
    data: Dataset, runs: StageRuns, checkpoint: Checkpoint, exported: Model, model: Model
) -> LayerReport:
    """Where the drift of a model file arises, on dev rows.

    Args:
        data: the rows.
        runs: the build's stages.
        checkpoint: what the files were made of.
        exported: the fp32 file.
        model: the file to look into.
    """
    from edgebert.pipeline.stages.layer_drift import MeasureLayers, read_layers

    stage = MeasureLayers()
    folder = runs.run(
        f"layers {model.info.format} {model.info.scheme}",
        stage,
        [checkpoint.sha256, exported.sha256, model.sha256, data.sha256],
        lambda out: stage(checkpoint, exported, model, data.dev, out),
    )
    return read_layers(folder)
