#!/bin/sh
# Makes the node's Debian root file system as a tar ($1), from the package sources that this
# machine's own apt uses. Needs mmdebstrap.
set -eu
out=$1
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
sources=/etc/apt/sources.list.d/debian.sources
[ -e "$sources" ] || sources=/etc/apt/sources.list
packages=ca-certificates,conntrack,containerd,containernetworking-plugins,ethtool,iproute2,iptables,jq,kmod,mount,procps,runc,socat,systemd,systemd-sysv,util-linux
mmdebstrap --quiet --format=tar --variant=minbase --include="$packages" \
  --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='rm -rf "$1"/etc/apt/sources.list* "$1"/etc/apt/apt.conf.d/99mmdebstrap "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*' \
  "$suite" "$out" "$sources"
