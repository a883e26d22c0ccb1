"""The runner's own measurement by the clock of its process, to which a busy machine adds little.

processor_time.py FOLDER_OF_RUN_PY FILE FP32_FILE TOKENS RUNS. One thread, so that the time of the
processor is the latency on an idle machine; by the clock on the wall a file whose inference is
shorter than the scheduler's time slice would seem faster than it is.
"""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import run  # type: ignore[import-not-found]

run.time.perf_counter = time.process_time
files, tokens, runs = [Path(word) for word in sys.argv[2:4]], int(sys.argv[4]), int(sys.argv[5])
for result in run.measure(files, tokens=tokens, threads=1, runs=runs, warmups=5):
    print(json.dumps(result))
