#!/bin/sh
# Builds the GPU bench on a machine with g++ alone: sh lab/bench/gpu/build.sh PROGRAM
set -eu
program=$(realpath -m "${1:?usage: build.sh PROGRAM}")
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../../native-codec"
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
flags="-std=c++20 -O3 -Iinclude -Isrc -I$here -DTRIBUTARY_HAS_GFNI512"
pids=
compile() {
  ${CXX:-g++} $flags $2 -c "$1" -o "$objects/$(basename "$1" .cc).o" &
  pids="$pids $!"
}
for name in coefficients elimination engine_reference engine_scalar engines gf256 rows; do compile "src/$name.cc" ""; done
compile src/engine_ssse3.cc -mssse3
compile src/engine_avx2.cc -mavx2
compile src/engine_gfni256.cc "-mavx2 -mgfni"
compile src/engine_gfni512.cc "-mgfni -mavx512f -mavx512bw"
for name in check context device driver modules residents; do compile "src/gpu/$name.cc" ""; done
for name in main host on_device; do compile "$here/$name.cc" ""; done
for pid in $pids; do wait "$pid"; done
${CXX:-g++} -pthread "$objects"/*.o -ldl -o "$program"
