#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The main job on real input: a kubeadm cluster on this machine, a fleet repository beside it, an upgrade from one to
# the other. `demo.sh down` removes both.
set -euo pipefail
cd "$(dirname "$0")/../.."

cache=${THESEUS_LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/theseus-lab}
demo=$cache/demo
lab() { go run -C test/lab ./cmd/lab "$@"; }
bold='' dim='' plain=''
if [[ -t 1 ]]; then bold=$'\033[1m' dim=$'\033[2m' plain=$'\033[0m'; fi
say() { printf '\n%s── %s%s\n' "$bold" "$*" "$plain"; }
show() { printf '%s$%s%s\n' "$dim" "$(printf ' %q' "$@")" "$plain"; "$@"; }
export GIT_PAGER=cat

if [[ ${1:-} == down ]]; then
  lab down --name demo
  if [[ -e $demo ]]; then
    rm -rf "$demo"
    echo "removed the demo's cluster and $demo (fleet repository, secrets)"
  fi
  exit
fi

began=$SECONDS
say "A real kubeadm cluster: v1.36.3, etcd 3.6.16, CoreDNS v1.14.2 (built from source the first time)"
lab up --name demo
built=$((SECONDS - began))
if [[ -e $demo ]]; then
  echo "the fleet repository of an earlier demo is replaced: $demo"
  rm -rf "$demo"
fi
mkdir -p "$demo/secrets/seed-dev-1"
install -m 600 "$(lab kubeconfig --name demo)" "$demo/secrets/seed-dev-1/kubeconfig"

say "A Corefile as people write them: comments, own indentation, a stub zone"
cat >"$demo/Corefile" <<'COREFILE'
# cluster DNS, owned by the platform team
.:53 {
	errors
	health {
		lameduck 5s   # as kubeadm has it
	}
	ready
	kubernetes cluster.local in-addr.arpa ip6.arpa {
		pods insecure
		fallthrough in-addr.arpa ip6.arpa
		ttl 30
	}
	prometheus :9153
	cache 30
	loop
	reload
	loadbalance
}

# our own names
corp.example:53 {
	hosts {
		192.0.2.10 git.corp.example
	}
}
COREFILE
lab reset-coredns --name demo --tag v1.14.2 --corefile "$demo/Corefile"
cat "$demo/Corefile"

say "A fleet repository: one fleet, one cluster, and what is wanted of it"
git init -q --bare -b main "$demo/fleet.git"
git clone -q "$demo/fleet.git" "$demo/fleet" 2>/dev/null
mkdir "$demo/fleet/clusters"
cat >"$demo/fleet/fleet.yaml" <<'FLEET'
apiVersion: theseus.dev/v1alpha1
kind: Fleet
spec:
  stages:
  - name: dev
    selector: {matchLabels: {stage: dev}}
FLEET
cat >"$demo/fleet/clusters/seed-dev-1.yaml" <<'CLUSTER'
apiVersion: theseus.dev/v1alpha1
kind: Cluster
metadata:
  name: seed-dev-1
  labels: {stage: dev}
spec:
  kubernetesVersion: v1.36.3
  baseImage: debian-12
  access:
    kubeconfig: {secretRef: {name: seed-dev-1, key: kubeconfig}}
  coreDNS:
    imageTag: v1.14.6
CLUSTER
git -C "$demo/fleet" add -A
git -C "$demo/fleet" config user.name Demo
git -C "$demo/fleet" config user.email demo@example.com
git -C "$demo/fleet" commit -q -m "seed-dev-1: CoreDNS v1.14.6"
git -C "$demo/fleet" push -q origin HEAD:main
cat "$demo/fleet/fleet.yaml"
echo ---
cat "$demo/fleet/clusters/seed-dev-1.yaml"

theseus() { show bin/theseus "$@" --repo "$demo/fleet.git" --secrets "$demo/secrets"; }

say "What would be done, and why"
theseus plan || [[ $? == 10 ]]

say "Do it"
theseus reconcile

say "The same again: nothing to do, nothing written"
theseus reconcile

say "What Git knows now: branch theseus/status"
show git -C "$demo/fleet.git" log --stat --format='%h %s' theseus/status
show git -C "$demo/fleet.git" show theseus/status:status/README.md

say "The Corefile in the cluster, compared with the one from the beginning"
lab corefile --name demo >"$demo/Corefile.after"
cmp "$demo/Corefile" "$demo/Corefile.after"
echo "byte for byte the same"
theseus status

cat <<END

The demo took $((SECONDS - began)) s, $built s of them for the cluster. Look further:
  git --no-pager -C $demo/fleet.git show theseus/status:status/clusters/seed-dev-1.yaml
  export KUBECONFIG=$demo/secrets/seed-dev-1/kubeconfig      # for kubectl
Upgrade by commit: v1.14.2 is the way back, v1.14.8 never starts, v1.14.7 convinces its canary and then crashes
  sed -i 's/imageTag: .*/imageTag: v1.14.2/' $demo/fleet/clusters/seed-dev-1.yaml
  git -C $demo/fleet commit -qam "seed-dev-1: another CoreDNS" && git -C $demo/fleet push -q origin HEAD:main
  bin/theseus plan --repo $demo/fleet.git --secrets $demo/secrets
  bin/theseus reconcile --repo $demo/fleet.git --secrets $demo/secrets
Take it down, with the fleet repository and your changes in it: make demo-down
END
