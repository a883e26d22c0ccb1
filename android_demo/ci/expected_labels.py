"""Write the label that `edgebert predict` gives each row of the shipped test split, for the app.

`expected_labels.py BUNDLE OUT`: OUT gets a JSON line a row, with `text`, `label`, `score`.
"""

import json
import sys
from pathlib import Path

from edgebert import pipeline
from edgebert.calibration.load import load_data


def main() -> None:
    """Label the rows."""
    bundle, out = Path(sys.argv[1]), Path(sys.argv[2])
    texts = [row.text or "" for row in load_data("clinc150").split("test")]
    answers = pipeline.predict(bundle, texts, format="onnx")
    lines = (
        json.dumps({"text": answer["text"], "label": answer["label"], "score": answer["score"]})
        for answer in answers
    )
    out.write_text("".join(line + "\n" for line in lines), encoding="ascii")


if __name__ == "__main__":
    main()
