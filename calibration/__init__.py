"""Labeled texts: reading them, drawing calibration texts, and the data sets that edgebert ships."""

from edgebert.calibration.dataset import SPLITS, Dataset, Row, Split, shipped_folders
from edgebert.calibration.load import load_data, load_dataset, shipped_dataset, shipped_names

__all__ = [
    "SPLITS",
    "Dataset",
    "Row",
    "Split",
    "load_data",
    "load_dataset",
    "shipped_dataset",
    "shipped_folders",
    "shipped_names",
]
