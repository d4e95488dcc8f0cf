#!/bin/sh
# Makes what the tests on Kubernetes need, from packages alone, and keeps it by the hash of what it
# is made from, so that a second run makes nothing:
#   build.sh helm    the helm program; its path is the last line of standard output
#   build.sh bound   the runtime for daemons whose root lacks a capability; likewise its path
#   build.sh image   the node image and kubectl; the last line is "IMAGE KUBECTL"
# Needs go; for the image also docker with a running daemon, and mmdebstrap (Debian, root).
# What is kept: ${XDG_CACHE_HOME:-~/.cache}/rocketmq-e2e, or where E2E_CACHE says; Go's build cache.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${E2E_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rocketmq-e2e}
kube=v1.37.2
kind=v0.33.0
started=$(date +%s)
mkdir -p "$cache"
export CGO_ENABLED=0 GOFLAGS=-mod=readonly

say() { echo "$* (after $(($(date +%s) - started)) s)" >&2; }
# Twelve digits of the hash of files and words.
hash_of() { # WORDS -- FILES
  { while [ "$1" != -- ]; do echo "$1"; shift; done; shift; cat "$@"; } | sha256sum | cut -c1-12
}
# Makes a file under its final name only when it is whole.
make_file() { # FILE WHAT COMMAND...; the file comes last
  file=$1 what=$2; shift 2
  [ -e "$file" ] && return 0
  say "making $what"
  "$@" "$file.new.$$"
  mv "$file.new.$$" "$file"
}
go_program() { # PACKAGE LDFLAGS OUT
  (cd "$here" && go build -trimpath -ldflags "-s -w $2" -o "$3" "$1")
}

go=$(go env GOVERSION)
helm_program() {
  helm=$cache/helm-$(hash_of "$go" -- "$here/go.mod" "$here/go.sum")
  make_file "$helm" "helm (two minutes on two idle cores)" go_program helm.sh/helm/v4/cmd/helm ""
}
bound_program() {
  bound=$cache/runc-bound-$(hash_of "$go" -- "$here/runc-bound/main.go")
  make_file "$bound" "the runtime" go_program ./runc-bound ""
}
hyper_program() {
  hyper=$cache/hyper-$(hash_of "$go" "$kube" -- "$here/go.mod" "$here/go.sum" "$here"/hyper/*.go)
  ver=k8s.io/component-base/version
  make_file "$hyper" "Kubernetes $kube (a quarter of an hour on two idle cores, once)" \
    go_program ./hyper "-X $ver.gitVersion=$kube -X $ver.gitMajor=1 -X $ver.gitMinor=37 \
      -X $ver.gitTreeState=clean -X $ver.gitCommit=0000000000000000000000000000000000000000 \
      -X $ver.buildDate=1970-01-01T00:00:00Z"
  kubectl=$cache/bin-${hyper##*-}/kubectl
  mkdir -p "${kubectl%/*}" && ln -sf "$hyper" "$kubectl"
}
pause_program() {
  pause=$cache/pause-$(hash_of "$go" -- "$here/pause/main.go")
  make_file "$pause" "the pod sandbox's program" go_program ./pause ""
}
root_files() {
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  rootfs=$cache/rootfs-$suite-$(hash_of "$suite" -- "$here/rootfs.sh").tar
  make_file "$rootfs" "the node's Debian" sh "$here/rootfs.sh"
}

# One container image of this run; its own steps have no network.
docker_build() { # TAG DOCKERFILE FOLDER
  docker build -q --network none -t "$1" -f "$2" "$3" >/dev/null
}

node_image() {
  root_files; hyper_program; pause_program
  inputs=$(hash_of "${hyper##*-}" "${pause##*-}" "${rootfs##*-}" "$kind" -- \
    "$0" "$here"/image/Dockerfile.* $(find "$here/image/files" -type f | sort))
  image=rocketmq-e2e-node:$inputs
  docker image inspect "$image" >/dev/null 2>&1 && return 0
  work=$cache/work-$inputs
  rm -rf "$work" && mkdir -p "$work/base/kindfiles" "$work/pod/links" "$work/pause"

  # The names that kubeadm gives the images of this version; pause is the last kind.
  "$hyper" kubeadm config images list --kubernetes-version $kube >"$work/names"
  pause_name=$(grep /pause: "$work/names")
  hyper_names=$(grep -v /pause: "$work/names")
  hyper_name=$(grep /kube-apiserver: "$work/names")

  say "node image, part 1: Debian, kind's files for a node, our files, Kubernetes"
  base=$work/base
  ln "$rootfs" "$base/rootfs.tar" 2>/dev/null || cp "$rootfs" "$base/rootfs.tar"
  ln "$hyper" "$base/hyper" 2>/dev/null || cp "$hyper" "$base/hyper"
  kind_files=$(cd "$cache" && go mod download -json sigs.k8s.io/kind@$kind | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  cp -r "$kind_files/images/base/files/." "$base/kindfiles/"
  cp -r "$here/image/files" "$base/files"
  chmod -R u+w "$base/kindfiles" "$base/files"
  rm -f "$base/kindfiles/usr/local/bin/clean-install"
  echo $kube >"$base/files/kind/version"
  sed -i "s|HYPER_IMAGE|$hyper_name|" "$base/files/kind/manifests/default-cni.yaml"
  sed -i -e "s|sandbox_image = .*|sandbox_image = \"$pause_name\"|" \
    -e 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' \
    "$base/kindfiles/etc/containerd/config.toml"
  docker_build "$image-base" "$here/image/Dockerfile.base" "$base"

  say "node image, part 2: what the cluster's own pods run"
  pod=$work/pod
  ln "$hyper" "$pod/hyper" 2>/dev/null || cp "$hyper" "$pod/hyper"
  for p in kube-apiserver kube-controller-manager kube-scheduler kube-proxy etcd coredns node-agent; do
    ln -s hyper "$pod/links/$p"
  done
  tar -C "$pod/links" -cf "$pod/links.tar" .
  docker run --rm --network none --entrypoint /bin/sh "$image-base" /kind/iptables-files >"$pod/iptables.list"
  docker run --rm -i --network none --entrypoint /bin/sh "$image-base" \
    -c 'tar --no-recursion -cf - -T -' <"$pod/iptables.list" >"$pod/iptables.tar"
  docker_build "$hyper_name" "$here/image/Dockerfile.hyper" "$pod"
  for name in $hyper_names; do docker tag "$hyper_name" "$name"; done
  cp "$pause" "$work/pause/pause"
  printf 'FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n' >"$work/pause/Dockerfile"
  docker_build "$pause_name" "$work/pause/Dockerfile" "$work/pause"
  docker save -o "$work/images.tar" $hyper_names "$pause_name"

  say "node image, part 3: those images in the node's own store"
  builder=rocketmq-e2e-build-$$
  docker run -d --name $builder --privileged --network none -v "$work/images.tar:/images.tar:ro" \
    --entrypoint /usr/bin/containerd "$image-base" >/dev/null
  docker exec $builder sh -c '
    tries=0
    until ctr version >/dev/null 2>&1; do
      tries=$((tries + 1)); [ $tries -lt 300 ] || exit 1; sleep 0.2
    done
    ctr -n k8s.io images import --no-unpack --digests=false /images.tar' >/dev/null
  docker kill -s TERM $builder >/dev/null && docker wait $builder >/dev/null
  docker commit --change 'ENTRYPOINT ["/usr/local/bin/node-start"]' --change 'VOLUME /var' $builder "$image" >/dev/null
  docker rm $builder >/dev/null
  docker rmi $hyper_names "$pause_name" >/dev/null
  rm -rf "$work"
  say "node image $image is made"
}

case ${1:-} in
helm) helm_program; echo "$helm" ;;
bound) bound_program; echo "$bound" ;;
image) node_image; echo "$image $kubectl" ;;
*) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
