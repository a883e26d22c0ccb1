"""Hold results of the app to measurement.schema.json: `check_measurements.py FILE ...`."""

import json
import sys
from pathlib import Path

from jsonschema import Draft202012Validator

SCHEMA = Path(__file__).parent.parent / "measurement.schema.json"


def main() -> None:
    """Exit with 1 and the faults of the first file that has some."""
    validator = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    for name in sys.argv[1:]:
        result = json.loads(Path(name).read_text(encoding="utf-8"))
        faults = [f"{name}: {e.json_path}: {e.message}" for e in validator.iter_errors(result)]
        if faults:
            sys.exit("\n".join(faults))
    print(f"{len(sys.argv) - 1} results are of the form of {SCHEMA.name}")


if __name__ == "__main__":
    main()
