#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Imports /in/images.tar into a containerd that lives for this script alone, and
# packs its folder into /out/store.tar.
set -e

containerd --log-level warn &
containerd=$!
tries=0
until ctr version >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ "$tries" -lt 150 ] || { echo "containerd does not answer" >&2; exit 1; }
	sleep 0.2
done
ctr --namespace k8s.io images import /in/images.tar
kill "$containerd"
wait "$containerd" || true
tar --create --file=/out/store.tar --numeric-owner --sort=name --xattrs --directory=/ var/lib/containerd
