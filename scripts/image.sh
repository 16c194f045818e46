#!/usr/bin/env bash
# Makes a container image of static programs, from scratch: image.sh BIN OUT. BIN has record, analyze and systape; OUT gets
# systape-VERSION-ARCH.oci.tar, an OCI image layout that `podman load`, `skopeo copy oci-archive:` and `ctr images import` take. Equal programs give
# equal images. Needs tar, gzip, sha256sum and jq.
set -euo pipefail

bin=$(realpath "$1") out=$2
cd "$(dirname "$0")/.."
mkdir -p "$out"
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
created=$(date -u -d "@$epoch" +%FT%TZ)
case $(readelf -h "$bin/record" | sed -n 's/^ *Machine: *//p') in
    *X86-64) arch=amd64 ;;
    *AArch64) arch=arm64 ;;
    *) echo "image: $bin/record is of no machine that is known" >&2; exit 1 ;;
esac
if readelf -l "$bin/record" | grep -q INTERP; then
    echo "image: $bin/record is not static: nothing else is in the image" >&2
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
blobs=$work/image/blobs/sha256
mkdir -p "$blobs" "$work/root/usr/bin" "$work/root/usr/share/licenses/systape" "$work/root/tapes"
install -m 755 "$bin/record" "$bin/analyze" "$bin/systape" "$work/root/usr/bin"
install -m 644 LICENSE-* "$work/root/usr/share/licenses/systape"

pack() { tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" --format=gnu -cf - "${@:2}"; }
# blob FILE TYPE: puts it in its place, and prints its descriptor
blob() {
    local digest size
    digest=$(sha256sum "$1" | cut -d' ' -f1) size=$(stat -c %s "$1")
    mv "$1" "$blobs/$digest"
    jq -cn --arg type "$2" --arg digest "sha256:$digest" --argjson size "$size" '{mediaType: $type, digest: $digest, size: $size}'
}

pack "$work/root" usr tapes >"$work/layer.tar"
diff_id=sha256:$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
gzip -9n "$work/layer.tar"
layer=$(blob "$work/layer.tar.gz" application/vnd.oci.image.layer.v1.tar+gzip)
jq -cn --arg arch "$arch" --arg created "$created" --arg diff "$diff_id" --arg version "$version" --arg revision "$revision" '{
    architecture: $arch, os: "linux", created: $created,
    config: {
        Entrypoint: ["/usr/bin/record"], WorkingDir: "/tapes", Env: ["PATH=/usr/bin"],
        Labels: {
            "org.opencontainers.image.title": "systape", "org.opencontainers.image.version": $version,
            "org.opencontainers.image.revision": $revision, "org.opencontainers.image.licenses": "Apache-2.0 OR MIT",
            "org.opencontainers.image.source": "https://github.com/systape/systape"
        }
    },
    rootfs: {type: "layers", diff_ids: [$diff]},
    history: [{created: $created, created_by: "scripts/image.sh"}]
}' >"$work/config.json"
config=$(blob "$work/config.json" application/vnd.oci.image.config.v1+json)
jq -cn --argjson config "$config" --argjson layer "$layer" \
    '{schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json", config: $config, layers: [$layer]}' >"$work/manifest.json"
manifest=$(blob "$work/manifest.json" application/vnd.oci.image.manifest.v1+json)
jq -cn --argjson manifest "$manifest" --arg version "$version" \
    '{schemaVersion: 2, manifests: [$manifest + {annotations: {"org.opencontainers.image.ref.name": "systape:\($version)"}}]}' >"$work/image/index.json"
echo '{"imageLayoutVersion":"1.0.0"}' >"$work/image/oci-layout"
image=$out/systape-$version-$arch.oci.tar
pack "$work/image" oci-layout index.json blobs >"$image"
(cd "$out" && sha256sum "${image##*/}" >"${image##*/}.sha256")
echo "$image"
