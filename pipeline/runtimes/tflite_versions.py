"""Which TFLite came first with which version of an operator.

Source: `FindMinimumRuntimeVersionForOp` in google-ai-edge/LiteRT,
    tflite/converter/tools/versioning/runtime_version.cc. Releases up to 2.17 are of TFLite
    (tflite-runtime's last one is 2.14.0); what is newer is in LiteRT only.
"""

# Operator -> the first release with its version 1, 2, 3, ...; what transformers use.
FIRST_RELEASE: dict[str, tuple[str, ...]] = {
    "ABS": ("1.13", "2.4", "2.5", "2.6", "2.12"),
    "ADD": ("1.5", "1.14", "2.4", "2.6", "2.13", "2.23"),
    "BATCH_MATMUL": ("2.3", "2.3", "2.4", "2.5"),
    "BROADCAST_TO": ("2.5", "2.5", "2.5"),
    "CAST": ("1.5", "2.7", "2.8", "2.9", "2.12", "2.15", "2.17", "2.21"),
    "CEIL": ("1.14",),
    "CONCATENATION": ("1.5", "1.14", "2.3", "2.14", "2.21", "2.23"),
    "CONV_2D": ("1.5", "1.14", "1.14", "2.3", "2.4", "2.9", "2.11", "2.15"),
    "COS": ("1.14", "2.23"),
    "CUMSUM": ("2.4",),
    "DEPTHWISE_CONV_2D": ("1.5", "1.12", "1.14", "2.2", "2.3", "2.3", "2.11"),
    "DEQUANTIZE": ("1.13.1", "1.14", "1.15", "2.2", "2.7", "2.18", "2.21", "2.22"),
    "DIV": ("1.6", "2.3"),
    "EMBEDDING_LOOKUP": ("1.13", "1.14", "1.14", "2.18", "2.21"),
    "EQUAL": ("1.14", "1.14", "2.3", "2.13", "2.21"),
    "EXP": ("1.7", "2.12"),
    "EXPAND_DIMS": ("1.10",),
    "FILL": ("1.13", "2.3", "2.5", "2.12"),
    "FLOOR": ("1.9",),
    "FLOOR_DIV": ("1.14", "1.14", "2.13"),
    "FLOOR_MOD": ("1.13", "2.13"),
    "FULLY_CONNECTED": (
        *("1.5", "1.10", "1.14", "1.14", "2.0", "2.1", "2.3"),
        *("2.3", "2.3", "2.11", "2.15", "2.17", "2.18", "2.21"),
    ),
    "GATHER": ("1.6", "1.14", "1.15", "2.4", "2.5", "2.13", "2.15"),
    "GATHER_ND": ("1.14", "2.3", "2.5", "2.13", "2.16"),
    "GELU": ("2.9", "2.9"),
    "GREATER": ("1.14", "1.14"),
    "GREATER_EQUAL": ("1.14", "1.14", "2.13"),
    "LESS": ("1.14", "1.14", "2.13"),
    "LESS_EQUAL": ("1.14", "1.14", "2.13"),
    "LOG": ("1.14", "2.15"),
    "LOGICAL_AND": ("1.11",),
    "LOGICAL_NOT": ("1.11",),
    "LOGICAL_OR": ("1.11",),
    "LOGISTIC": ("1.14", "1.14", "2.3"),
    "MAXIMUM": ("1.14", "1.14", "2.3", "2.3"),
    "MEAN": ("1.6", "1.14", "2.4"),
    "MINIMUM": ("1.14", "1.14", "2.3", "2.3"),
    "MUL": ("1.5", "1.14", "1.15", "2.3", "2.6", "2.11", "2.13", "2.23"),
    "NEG": ("1.9",),
    "NOT_EQUAL": ("1.14", "1.14", "2.3", "2.21"),
    "ONE_HOT": ("1.11",),
    "PACK": ("1.11", "1.14", "2.3", "2.13"),
    "PAD": ("1.5", "1.14", "2.4", "2.6", "2.20"),
    "PADV2": ("1.9", "1.14", "2.4", "2.6", "2.20"),
    "POW": ("1.10",),
    "QUANTIZE": ("1.14", "1.15", "2.7", "2.21", "2.21", "2.21"),
    "RANGE": ("1.13", "2.14"),
    "REDUCE_ALL": ("2.6",),
    "REDUCE_ANY": ("1.11",),
    "REDUCE_MAX": ("1.11", "1.14", "2.5"),
    "REDUCE_MIN": ("1.11", "1.14", "2.5"),
    "RELU": ("1.5", "2.1", "2.5"),
    "RESHAPE": ("1.5",),
    "ROUND": ("1.14",),
    "RSQRT": ("1.10", "2.5", "2.15"),
    "SELECT": ("1.14", "1.14", "2.12", "2.12"),
    "SELECT_V2": ("2.2", "2.12"),
    "SIGN": ("2.11", "2.12"),
    "SIN": ("1.9", "2.23"),
    "SLICE": ("1.14", "1.14", "1.14", "2.4", "2.5", "2.14", "2.21", "2.23"),
    "SOFTMAX": ("1.5", "1.14", "2.3", "2.23"),
    "SPLIT": ("1.5", "1.14", "1.14", "2.3"),
    "SQRT": ("1.10", "2.21"),
    "SQUARE": ("1.12",),
    "SQUARED_DIFFERENCE": ("1.13.1", "2.5"),
    "SQUEEZE": ("1.6", "2.5"),
    "STABLEHLO_COMPOSITE": ("2.17",),
    "STRIDED_SLICE": ("1.6", "1.14", "2.1", "2.2", "2.5", "2.6", "2.14", "2.14"),
    "SUB": ("1.6", "1.14", "2.3", "2.4", "2.4"),
    "SUM": ("1.10", "1.15"),
    "TANH": ("1.14", "1.14", "2.3"),
    "TILE": ("1.10.1", "2.2", "2.8"),
    "TRANSPOSE": ("1.6", "1.14", "1.15", "2.3", "2.4", "2.12", "2.14.4", "2.22", "2.23"),
    "TRANSPOSE_CONV": ("1.9", "2.2", "2.3", "2.13", "2.15"),
    "UNPACK": ("1.11", "1.14", "2.2", "2.3", "2.22"),
    "WHERE": ("1.14", "2.8"),
    "WHILE": ("1.15",),
}


def minimum_runtime(operators: dict[str, int]) -> str:
    """First release that has every operator in its version; empty where the table lacks one."""
    releases = []
    for name, version in operators.items():
        known = FIRST_RELEASE.get(name, ())
        if version > len(known):
            return ""
        releases.append(known[version - 1])
    return max(releases, key=_numbers, default="")


def newest_versions(release: str) -> dict[str, int]:
    """Operator -> newest version that a release has; 0 where it lacks the operator."""
    limit = _numbers(release)
    return {
        name: sum(_numbers(first) <= limit for first in firsts)
        for name, firsts in FIRST_RELEASE.items()
    }


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))
