#!/bin/sh
# Joins this machine to its cluster, once. Usage: join.sh KUBEADM
# It never resets: what a failed join left is evidence, and a member of etcd perhaps. The machine is replaced instead.
set -u
kubeadm=$1
config=/run/theseus/join.yaml
log=/var/log/theseus-join.log
attempts=5
PATH=$PATH:${kubeadm%/*}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

trap 'rm -f "$config"' EXIT
trap 'exit 143' HUP INT TERM
# Not by umask: kubeadm's own files must stay readable for who mounts them.
[ -e "$log" ] || install -m 0600 /dev/null "$log"

say() {
    echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) theseus: $*" | tee -a "$log"
}

if [ -e /etc/kubernetes/kubelet.conf ]; then
    say "nothing done: /etc/kubernetes/kubelet.conf exists, so this machine has joined a cluster before"
    exit 0
fi
if [ ! -x "$kubeadm" ]; then
    say "failed: the image has no program $kubeadm; the spec's controlPlane.join.kubeadmPath says where kubeadm is"
    exit 1
fi
attempt=1
while :; do
    say "attempt $attempt of $attempts: $kubeadm join"
    if "$kubeadm" join --config="$config" >>"$log" 2>&1; then
        say "joined"
        exit 0
    fi
    if [ -e /etc/kubernetes/kubelet.conf ] || [ -e /etc/kubernetes/bootstrap-kubelet.conf ]; then
        say "failed: kubeadm had started the kubelet, and from there on a join can't be repeated; see above in $log"
        exit 1
    fi
    if [ "$attempt" -ge "$attempts" ]; then
        say "failed: $attempts attempts; see above in $log"
        exit 1
    fi
    attempt=$((attempt + 1))
    sleep 15
done
