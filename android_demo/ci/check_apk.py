"""Hold an APK to what the app promises; `python ci/check_apk.py APK BADGING`.

BADGING is what `aapt2 dump badging` says. Libraries and models must lie in the APK as they are, at
16 KB pages (https://developer.android.com/guide/practices/page-sizes); no permission is asked for.
"""

import struct
import sys
import zipfile
from pathlib import Path

PAGE = 16384
ABIS = ("arm64-v8a", "x86_64")
PT_LOAD = 1
LOCAL_HEADER = struct.Struct("<26xHH")


def data_offset(apk: Path, entry: zipfile.ZipInfo) -> int:
    """Where the bytes of an entry begin in the file."""
    with apk.open("rb") as stream:
        stream.seek(entry.header_offset)
        name, extra = LOCAL_HEADER.unpack(stream.read(LOCAL_HEADER.size))
    return entry.header_offset + LOCAL_HEADER.size + int(name) + int(extra)


def segment_alignment(library: bytes) -> int:
    """Smallest alignment of a 64-bit ELF file's loaded segments."""
    (offset,) = struct.unpack_from("<Q", library, 32)
    size, count = struct.unpack_from("<HH", library, 54)
    headers = [offset + size * index for index in range(count)]
    loaded = [at for at in headers if struct.unpack_from("<I", library, at)[0] == PT_LOAD]
    return min(struct.unpack_from("<Q", library, at + 48)[0] for at in loaded)


def faults(apk: Path, badging: str) -> list[str]:
    """What is wrong with it, in words."""
    found = [line for line in badging.splitlines() if line.startswith("uses-permission")]
    if not {"sdkVersion:'24'", "minSdkVersion:'24'"} & set(badging.splitlines()):
        found.append("minSdkVersion is not 24")
    if "targetSdkVersion:'35'" not in badging:
        found.append("targetSdkVersion is not 35")
    if "application-debuggable" in badging:
        found.append("it is debuggable")
    with zipfile.ZipFile(apk) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        for abi in ABIS:
            for library in ("libonnxruntime.so", "libonnxruntime4j_jni.so"):
                name = f"lib/{abi}/{library}"
                if name not in entries:
                    found.append(f"{name} is missing")
                elif segment_alignment(archive.read(name)) < PAGE:
                    found.append(f"{name} is not made for 16 KB pages")
    if "classes.dex" not in entries:
        found.append("classes.dex is missing")
    mapped = [entry for name, entry in entries.items() if name.endswith((".so", ".onnx"))]
    if not any(entry.filename.endswith(".onnx") for entry in mapped):
        found.append("no model in the assets")
    for entry in mapped:
        if entry.compress_type != zipfile.ZIP_STORED:
            found.append(f"{entry.filename} is compressed")
        elif data_offset(apk, entry) % PAGE:
            found.append(f"{entry.filename} is not at a 16 KB page")
    return found


def main() -> None:
    """Exit with 1 and the faults, or with the size."""
    apk = Path(sys.argv[1])
    found = faults(apk, sys.argv[2])
    if found:
        sys.exit("\n".join(f"{apk.name}: {fault}" for fault in found))
    print(f"{apk.name}: {apk.stat().st_size / 1e6:.1f} MB, no permission, 16 KB pages")


if __name__ == "__main__":
    main()
