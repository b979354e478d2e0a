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
say "A real kubeadm cluster, three control-plane machines made by Terraform: v1.36.3, etcd 3.6.16, CoreDNS v1.14.2 (built from source the first time)"
parts() { go run -C test/lab ./cmd/parts "$@"; }
parts all >/dev/null
lab up --name demo --machines 3
built=$((SECONDS - began))
if [[ -e $demo ]]; then
  echo "the fleet repository of an earlier demo is replaced: $demo"
  rm -rf "$demo"
fi
mkdir -p "$demo/secrets/demo" "$demo/snapshots"
install -m 600 "$(lab kubeconfig --name demo)" "$demo/secrets/demo/kubeconfig"

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

say "A fleet repository: the Terraform module that made the machines, one fleet, one cluster, and what is wanted of it"
git init -q --bare -b main "$demo/fleet.git"
git clone -q "$demo/fleet.git" "$demo/fleet" 2>/dev/null
mkdir -p "$demo/fleet/clusters" "$demo/fleet/infra"
module=$(lab module --name demo)
cp "$module/main.tf" "$module/lab.tfvars" "$demo/fleet/infra/"
service=$(sed -n 's/^service = "\(.*\)"$/\1/p' "$module/lab.tfvars")
terraform=terraform
command -v terraform >/dev/null || terraform=$(parts tofu)
cat >"$demo/fleet/fleet.yaml" <<FLEET
apiVersion: theseus.dev/v1alpha1
kind: Fleet
spec:
  stages:
  - name: dev
    selector: {matchLabels: {stage: dev}}
  images:
    debian-12-v1.36.3: {lab: "$(parts node)"}
    debian-13-v1.37.2: {lab: "$(parts --kubernetes v1.37.2 --debian debian-13 node)"}
FLEET
cat >"$demo/fleet/clusters/demo.yaml" <<CLUSTER
apiVersion: theseus.dev/v1alpha1
kind: Cluster
metadata:
  name: demo
  labels: {stage: dev}
spec:
  kubernetesVersion: v1.36.3
  baseImage: debian-12-v1.36.3
  place: lab
  access:
    kubeconfig: {secretRef: {name: demo, key: kubeconfig}}
  coreDNS:
    imageTag: v1.14.2
  etcd:
    imageTag: 3.6.16-0
    snapshot: {to: $demo/snapshots}
  controlPlane:
    replicas: 3
    rollout: {stableFor: 10s}
    join:
      # The lab's machines have no kernel configuration that kubeadm could look at.
      nodeRegistration: {ignorePreflightErrors: [SystemVerification]}
  terraform:
    dir: infra
    binary: $terraform
    varFiles: [lab.tfvars]
    backendConfig:
      address: $service/state/demo
      lock_address: $service/state/demo
      unlock_address: $service/state/demo
CLUSTER
git -C "$demo/fleet" config user.name Demo
git -C "$demo/fleet" config user.email demo@example.com
commit() { git -C "$demo/fleet" add -A && git -C "$demo/fleet" commit -q -m "$1" && git -C "$demo/fleet" push -q origin HEAD:main; }
commit "demo: as it is"
cat "$demo/fleet/fleet.yaml"
echo ---
cat "$demo/fleet/clusters/demo.yaml"

theseus() { show bin/theseus "$@" --repo "$demo/fleet.git" --secrets "$demo/secrets"; }

say "The spec says what runs: there is nothing to do"
theseus reconcile

say "The upgrade, as a commit: base image, Kubernetes, etcd and CoreDNS"
sed -i -e 's/kubernetesVersion: .*/kubernetesVersion: v1.37.2/' -e 's/baseImage: .*/baseImage: debian-13-v1.37.2/' \
  -e 's/imageTag: v1.14.2/imageTag: v1.14.6/' -e 's/imageTag: 3.6.16-0/imageTag: 3.7.3-0/' "$demo/fleet/clusters/demo.yaml"
commit "demo: Debian 13, Kubernetes v1.37.2, etcd 3.7.3, CoreDNS v1.14.6"
show git -C "$demo/fleet" show --format='%h %s' -U0

say "What would be done, and why"
theseus plan || [[ $? == 10 ]]

say "Do it: a new machine joins, an old one goes, three times; then kube-proxy and CoreDNS"
rolled=$SECONDS
theseus reconcile
rolled=$((SECONDS - rolled))

say "The same again: nothing to do, nothing written"
theseus reconcile

say "What Git knows now: branch theseus/status"
show git -C "$demo/fleet.git" log --stat --format='%h %s' theseus/status
show git -C "$demo/fleet.git" show theseus/status:status/README.md
theseus machines demo

say "The Corefile in the cluster, compared with the one from the beginning"
lab corefile --name demo >"$demo/Corefile.after"
cmp "$demo/Corefile" "$demo/Corefile.after"
echo "byte for byte the same"
theseus status

cat <<END

The demo took $((SECONDS - began)) s: $built s for the cluster, $rolled s for the roll. Look further:
  git --no-pager -C $demo/fleet.git show theseus/status:status/clusters/demo.yaml
  export KUBECONFIG=$demo/secrets/demo/kubeconfig      # for kubectl
Go on by commit: other controlPlane.values replace the machines again, replicas: 1 removes two of them, coreDNS.imageTag v1.14.2 is
the way back, v1.14.8 never starts, v1.14.7 convinces its canary and then crashes
  sed -i 's/replicas: 3/replicas: 1/' $demo/fleet/clusters/demo.yaml
  git -C $demo/fleet commit -qam "demo: one machine" && git -C $demo/fleet push -q origin HEAD:main
  bin/theseus plan --repo $demo/fleet.git --secrets $demo/secrets
  bin/theseus reconcile --repo $demo/fleet.git --secrets $demo/secrets
Take it down, with the fleet repository and your changes in it: make demo-down
END
