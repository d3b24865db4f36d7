#!/bin/sh
# Build the container image `buscoupler:VERSION` from the Debian package that was built last, with podman, buildah
# or docker (BUILDER). BASE=scratch makes the base by debootstrap, from the mirror of apt, where none can be pulled.
set -eu
arch=$(dpkg --print-architecture)
package=$(ls -t build/buscoupler_*_"$arch".deb | head -n 1)
version=$(basename "$package" | cut -d_ -f2)
builder=${BUILDER:-$(command -v podman || command -v buildah || command -v docker)}
base=${BASE:-debian:bookworm-slim}
rm -rf build/image
mkdir -p build/image
cp "$package" build/image/buscoupler.deb
if [ "$base" = scratch ]; then
    base=localhost/buscoupler-base
    root=build/image-root
    if [ ! -e "$root/etc/debian_version" ]; then
        rm -rf "$root"
        mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
        debootstrap --variant=minbase bookworm "$root" "$mirror" >/dev/null
        # As the slim images of Debian: no manuals, no translations, no packages that were unpacked.
        rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/man/* \
            "$root"/usr/share/locale/* "$root"/usr/share/info/*
        find "$root/usr/share/doc" -type f ! -name copyright -delete
    fi
    tar -C "$root" -c . | "$builder" import - "$base" >/dev/null
fi
"$builder" build ${BUILD_OPTIONS:-} --build-arg "BASE=$base" -t "buscoupler:$version" -f Dockerfile build/image
"$builder" images "buscoupler:$version"
