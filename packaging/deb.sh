#!/bin/sh
# Build a Debian package with an environment of its own, /opt/buscoupler: build/buscoupler_VERSION_ARCH.deb.
# Wheels are chosen for ARCH (amd64 or arm64) and PYTHON_VERSION, so a package for arm64 can be built anywhere.
# Needs dpkg-deb, and an environment (PIP_PYTHON) with pip and setuptools.
set -eu
arch=${ARCH:-$(dpkg --print-architecture)}
version_python=${PYTHON_VERSION:-3.11}  # of the Debian release that it is for: 3.11 in bookworm
pip="${PIP_PYTHON:-.venv/bin/python} -m pip --quiet --disable-pip-version-check"
case $arch in
    amd64) machine=x86_64 ;;
    arm64) machine=aarch64 ;;
    *) echo "no wheels are chosen for $arch: ARCH=amd64 or ARCH=arm64" >&2; exit 2 ;;
esac
work=build/deb-$arch
root=$work/root
home=/opt/buscoupler
rm -rf "$work" build/lib build/bdist.*  # setuptools would pack what an earlier build left there
mkdir -p "$root$home/bin" "$root/usr/bin" "$root/usr/share/doc/buscoupler" "$root/DEBIAN" "$root/etc/buscoupler"

site=$root$home/lib/python$version_python/site-packages
$pip wheel --no-deps --wheel-dir "$work" .
wheel=$(ls "$work"/buscoupler-*.whl)
version=$(basename "$wheel" | cut -d- -f2)
platforms="--platform manylinux_2_28_$machine --platform manylinux_2_17_$machine --platform manylinux2014_$machine"
only="--only-binary :all: --python-version $version_python --implementation cp $platforms"
$pip install $only --target "$site" --no-deps --require-hashes -r requirements.lock
$pip install $only --target "$site" --no-deps --upgrade "$wheel"
rm -rf "$site/bin"
cp -r "$site/share" "$root/usr/"  # documents, and what else belongs there
rm -rf "$site/share"
find "$root" -name __pycache__ -prune -exec rm -rf {} +

# A virtual environment: an interpreter beside a pyvenv.cfg.
ln -s "/usr/bin/python$version_python" "$root$home/bin/python3"
printf 'home = /usr/bin\ninclude-system-site-packages = false\nversion = %s\n' "$version_python" > "$root$home/pyvenv.cfg"
cat > "$root$home/bin/buscoupler" <<END
#!$home/bin/python3 -P
import sys
from buscoupler.__main__ import main
sys.exit(main())
END
chmod 755 "$root$home/bin/buscoupler"
ln -s "$home/bin/buscoupler" "$root/usr/bin/buscoupler"
cp LICENSE "$root/usr/share/doc/buscoupler/copyright"
mkdir "$root/usr/share/doc/buscoupler/examples"
cp topologies/*.yaml "$root/usr/share/doc/buscoupler/examples/"

cat > "$root/DEBIAN/control" <<END
Package: buscoupler
Version: $version
Architecture: $arch
Section: net
Priority: optional
Maintainer: the buscoupler project <buscoupler@localhost>
Installed-Size: $(du -sk "$root" | cut -f1)
Depends: python$version_python, libc6 (>= 2.28), libstdc++6
Suggests: can-utils, i2c-tools, socat
Description: bus and bridge appliance for gateways
 Joins partial buses on TCP, CAN, UART, I2C and multicast into one. It has an
 environment of its own in $home. "buscoupler install FILE" makes a
 service of a topology.
END
cp packaging/postinst packaging/prerm "$root/DEBIAN/"
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm"
find "$root" -type d -exec chmod 755 {} +
find "$root" -type f ! -perm -u=x -exec chmod 644 {} +
(cd "$root" && find opt usr -type f -exec md5sum {} + > DEBIAN/md5sums)
dpkg-deb --root-owner-group --build "$root" "build/buscoupler_${version}_$arch.deb" >/dev/null
echo "build/buscoupler_${version}_$arch.deb"
