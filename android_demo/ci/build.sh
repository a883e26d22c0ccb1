#!/usr/bin/env bash
# Builds the demo app without an Android SDK and runs its tests.
#
#   ci/build.sh            the APK and all tests: build/edgebert-demo.apk, build/screens/*.png
#
# Needs Debian's openjdk-17-jdk-headless maven npm zipalign apksigner zip unzip, and installs nothing.
# Everything else comes from Maven and npm through their clients.
#
#   EDGEBERT   how to call edgebert         [uv run --project .. edgebert]
#   PYTHON     a Python that imports it, jsonschema, and the app's version of onnxruntime
#              [uv run --project .. --with onnxruntime==1.29.0 --with jsonschema==4.26.0 python]
#   BUNDLE     a bundle that is built       [builds the shipped ALBERT for android-arm64]
set -euo pipefail
BUNDLE=${BUNDLE:+$(realpath "$BUNDLE")}
cd "$(dirname "$0")/.."

EDGEBERT=${EDGEBERT:-uv run --project .. edgebert}
# The same version on both sides: int8 rounds near ties differently from version to version.
PYTHON=${PYTHON:-uv run --project .. --with onnxruntime==1.29.0 --with jsonschema==4.26.0 python}
BUILD=$PWD/build
BUNDLE=${BUNDLE:-$BUILD/bundle}
PACKAGE=dev.edgebert.demo
VERSION=0.1.0
MIN_SDK=24
TARGET_SDK=35
ABIS="arm64-v8a x86_64"
PAGE=16384
# A third party's repackaging of ONNX Runtime for Android, since the official artifact is not on
# Maven Central. For this test APK only: Gradle takes the official one.
RUNTIME_PACKAGE=com.github.asus4.onnxruntime@0.4.9
RUNTIME_SHA256=98cddbac92640b4a6af72a03c42e0491851f366d3da66bbaeb5dd66310946cf2

step() { printf '%5d s  %s\n' "$SECONDS" "$1" >&2; }

for tool in javac mvn npm zipalign apksigner zip unzip; do
  command -v "$tool" >/dev/null || {
    echo "build.sh: $tool is missing; its first lines name the packages" >&2
    exit 3
  }
done
mkdir -p "$BUILD"

step "bundle, and the labels that the app must give"
if [ "$BUNDLE" = "$BUILD/bundle" ]; then
  $EDGEBERT build --model albert --target android-arm64 --out "$BUNDLE" >/dev/null
fi
$PYTHON ci/expected_labels.py "$BUNDLE" "$BUILD/expected.jsonl"

step "values for the tokenizers"
VALUES=core/target/tokenizer-values
if [ ! -f $VALUES/texts.jsonl ] || [ -n "$(find ci -name '*.py' -newer $VALUES/texts.jsonl)" ]; then
  $PYTHON ci/tokenizer_values.py $VALUES >&2
fi

step "tools"
mvn -q -B --strict-checksums -f ci/tools.pom.xml dependency:build-classpath \
  -Dmdep.pathSeparator=: -Dmdep.outputFile="$BUILD/tools.txt"
find_jar() { tr ':' '\n' <"$BUILD/tools.txt" | grep "/$1/[^/]*/[^/]*$"; }
ANDROID_JAR=$(find_jar android-all)
R8_JAR=$(find_jar r8)
unzip -qoj "$(find_jar apktool-lib)" prebuilt/linux/aapt2 prebuilt/android-framework.jar \
  -d "$BUILD/aapt"
chmod +x "$BUILD/aapt/aapt2"
AAPT2=$BUILD/aapt/aapt2
mkdir -p "$BUILD/instrumented" "$BUILD/litert"
ln -sf "$(find_jar android-all-instrumented)" "$BUILD/instrumented/"
for part in tensorflow-lite-api tensorflow-lite; do
  unzip -p "$(find_jar "$part")" classes.jar >"$BUILD/litert/$part.jar"
done

step "ONNX Runtime for Android"
AAR=$BUILD/onnxruntime.aar
if ! echo "$RUNTIME_SHA256  $AAR" | sha256sum --check --status 2>/dev/null; then
  (cd "$BUILD" && npm pack --silent "$RUNTIME_PACKAGE" >/dev/null &&
    tar -xzOf com.github.asus4.onnxruntime-*.tgz package/Plugins/Android/onnxruntime.aar >"$AAR" &&
    rm com.github.asus4.onnxruntime-*.tgz)
  echo "$RUNTIME_SHA256  $AAR" | sha256sum --check --quiet
fi
unzip -qo "$AAR" classes.jar 'jni/*' -d "$BUILD/runtime"
# Nothing is sent anywhere.
zip -qd "$BUILD/runtime/classes.jar" 'ai/onnxruntime/Telemetry*' 'ai/onnxruntime/telemetry/*'

step "resources"
rm -rf "$BUILD/assets" "$BUILD/gen"
mkdir -p "$BUILD/assets/bundles/albert" "$BUILD/gen"
# The app has no runtime for the .tflite file, and does not need the papers.
cp "$BUNDLE"/{manifest.json,tokenizer.json,golden.jsonl,model.onnx} "$BUILD/assets/bundles/albert/"
# Gradle takes the package from `namespace`, aapt2 from the manifest; nothing is merged here that
# would have to be removed.
sed -e "s/<manifest /<manifest package=\"$PACKAGE\" /" -e '/tools:node="remove"/d' \
  app/src/main/AndroidManifest.xml >"$BUILD/AndroidManifest.xml"
"$AAPT2" compile --dir app/src/main/res -o "$BUILD/res.zip"
"$AAPT2" link -I "$BUILD/aapt/android-framework.jar" --manifest "$BUILD/AndroidManifest.xml" \
  -A "$BUILD/assets" -0 onnx -0 tflite --java "$BUILD/gen" \
  --min-sdk-version $MIN_SDK --target-sdk-version $TARGET_SDK \
  --version-code 1 --version-name $VERSION \
  -o "$BUILD/base.apk" "$BUILD/res.zip"
mkdir -p "$BUILD/robolectric/com/android/tools"
cat >"$BUILD/robolectric/com/android/tools/test_config.properties" <<END
android_custom_package=$PACKAGE
android_merged_assets=$BUILD/assets
android_merged_manifest=$BUILD/AndroidManifest.xml
android_resource_apk=$BUILD/base.apk
END

step "compile and test"
rm -rf core/target/surefire-reports app/target/surefire-reports
mvn -q -B --strict-checksums -Dbundle.dir="$BUNDLE" test >&2
$PYTHON ci/check_measurements.py core/target/{golden,measurement,rows,failed}.json >&2

step "dex"
rm -rf "$BUILD/dex" && mkdir -p "$BUILD/dex"
jar cf "$BUILD/core.jar" -C core/target/classes .
jar cf "$BUILD/app.jar" -C app/target/classes .
JDK=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")") # has java.*, which android-all lacks
java -cp "$R8_JAR" com.android.tools.r8.D8 --release --min-api $MIN_SDK \
  --lib "$JDK" --lib "$ANDROID_JAR" --output "$BUILD/dex" \
  "$BUILD/core.jar" "$BUILD/app.jar" "$BUILD/runtime/classes.jar"

step "package, align, sign"
cp "$BUILD/base.apk" "$BUILD/unaligned.apk"
rm -rf "$BUILD/native" && mkdir -p "$BUILD/native/lib"
for abi in $ABIS; do cp -r "$BUILD/runtime/jni/$abi" "$BUILD/native/lib/"; done
(cd "$BUILD/dex" && zip -q "$BUILD/unaligned.apk" classes*.dex)
(cd "$BUILD/native" && zip -q -0 -r -D "$BUILD/unaligned.apk" lib)
zipalign -f $PAGE "$BUILD/unaligned.apk" "$BUILD/aligned.apk"
KEYS=$BUILD/test-key.p12
[ -f "$KEYS" ] || keytool -genkeypair -keystore "$KEYS" -storepass edgebert -alias test \
  -keyalg RSA -keysize 2048 -validity 10000 -dname "CN=edgebert test key" 2>/dev/null
APK=$BUILD/edgebert-demo.apk
apksigner sign --ks "$KEYS" --ks-pass pass:edgebert --out "$APK" "$BUILD/aligned.apk"
apksigner verify --min-sdk-version $MIN_SDK "$APK"
$PYTHON ci/check_apk.py "$APK" "$("$AAPT2" dump badging "$APK")"

step "done: $(cat ./*/target/surefire-reports/*.txt |
  awk '/^Tests run/ {gsub(",", ""); passed += $3 - $5 - $7} END {print passed}') tests passed, $APK"
