#!/usr/bin/env bash
# What programs of arm64 are linked with: Debian's libelf and zlib, unpacked into DIR (arm64.sh DIR); the system stays as it is. A compiler
# for arm64 (gcc-aarch64-linux-gnu) and Rust's target are installed by setup.sh arm64.
set -euo pipefail

mkdir -p "$1"
dir=$(realpath "$1")
[ ! -e "$dir/usr/lib/aarch64-linux-gnu/libelf.a" ] || exit 0
mkdir -p "$dir"/apt/{lists/partial,parts,cache/archives/partial,debs}
# a copy of what this machine asks
cp /etc/apt/sources.list.d/debian.sources "$dir/apt/parts/"
apt=(-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$dir/apt/parts" -o Dir::State::Lists="$dir/apt/lists"
    -o Dir::Cache="$dir/apt/cache" -o Acquire::Retries=3 -o Acquire::Languages=none -o APT::Sandbox::User=root
    -o APT::Architecture=arm64 -o APT::Architectures=arm64)
apt-get "${apt[@]}" update -qq -o APT::Update::Error-Mode=any
(cd "$dir/apt/debs" && apt-get "${apt[@]}" download -qq libelf-dev zlib1g-dev)
for deb in "$dir"/apt/debs/*.deb; do dpkg -x "$deb" "$dir"; done
rm -rf "$dir/apt"
