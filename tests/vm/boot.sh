#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# boot.sh ROOT SHARE boots a real systemd as PID 1 of a container. The system in ROOT does not change: all changes go
# to an overlay, which is removed at the end. The directory SHARE is /share in the container. The script returns when
# the container has ended, and nothing of the container remains: its mounts are in a mount namespace, its processes
# are in a pid namespace that ends with this script, and its cgroup is removed.
#
# The container has the kernel, the capabilities and the tracefs of the host, but no network, and it cannot write to
# /proc/sys. It has its own cgroup2 hierarchy. The host can use cgroups of version 1 or 2.
# shellcheck disable=SC2317 # a trap and an exported function run what follows
set -euo pipefail

root=$1 share=$2
name=flightrec-test-$$
cgroups=/sys/fs/cgroup/unified
[ -d $cgroups ] || cgroups=/sys/fs/cgroup
cgroup=$cgroups/$name
work=$(mktemp -d "/tmp/$name.XXXXXX")
child=

clean_up() {
	trap '' TERM INT HUP
	if [ -n "$child" ]; then
		kill -KILL "$child" 2>/dev/null || true
		wait "$child" 2>/dev/null || true
	fi
	rmdir "$work"
	for _ in {1..600}; do # tries again, because the last processes can still be exiting
		find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || true
		[ -d "$cgroup" ] || return 0
		sleep 0.1
	done
	echo "boot.sh: cannot remove $cgroup" >&2
}

# Boots the container. Runs in new namespaces.
inside() {
	mount -t tmpfs -o size=2g flightrec-test "$work"
	mkdir "$work/upper" "$work/work" "$work/root"
	mount -t overlay -o "lowerdir=$root,upperdir=$work/upper,workdir=$work/work" overlay "$work/root"
	umount -R /sys/fs/cgroup 2>/dev/null || umount -lR /sys/fs/cgroup
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing
	mountpoint -q /sys/fs/bpf || mount -t bpf nodev /sys/fs/bpf
	exec systemd-nspawn --quiet --register=no --keep-unit --boot --console=pipe --link-journal=no --directory="$work/root" \
		--machine="$name" --hostname=flightrec-test --capability=all \
		--system-call-filter="perf_event_open bpf @aio @keyring @memlock kcmp" \
		--bind=/sys/kernel/tracing --bind=/sys/fs/bpf --bind="$share:/share"
}

mkdir "$cgroup"
trap clean_up EXIT
trap 'exit 143' TERM INT HUP
export root share work name
export -f inside
(
	echo "$BASHPID" >"$cgroup/cgroup.procs"
	exec setpriv --pdeathsig KILL unshare --mount --net --pid --fork --kill-child --mount-proc --propagation private -- \
		bash -euc inside
) </dev/null &
child=$!
rc=0
wait "$child" || rc=$?
child=
exit $rc
