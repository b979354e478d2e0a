#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of a machine. It undoes what a container that is not
# privileged has read-only or private, then becomes systemd.
set -e

mount -o remount,rw /sys
mount -o remount,rw /proc/sys 2>/dev/null || mount -o bind,remount,rw /proc/sys
# The machine's own part of the control groups: run it with --cgroupns=private.
# The host's folder is not mounted, or kubelets would end each other's pods.
for group in /sys/fs/cgroup /sys/fs/cgroup/*; do
	if mountpoint -q "$group"; then mount -o remount,bind,rw "$group"; fi
done
mount --make-rshared /
echo 1 > /proc/sys/net/ipv4/ip_forward

# The kubelet watches the kernel's log for processes killed for want of memory.
[ -e /dev/kmsg ] || mknod /dev/kmsg c 1 11

exec /sbin/init "$@"
