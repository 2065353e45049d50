#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# First process of the virtual machine: from the initial file system to the host's root.
# shellcheck shell=dash
#
# /new becomes the root: the host's file system (with -s the systemd tree above it), read-only,
# below a tmpfs.  What the machine is told and what it answers is in /run/casemate-vm.
export PATH=/bin

fail() {
	echo "initrd: $*"
	poweroff -f
}

/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
while read -r module; do
	insmod "/modules/$module" || echo "initrd: cannot load $module"
done </modules/order

plan9=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o "ro,$plan9,cache=loose" host /host || fail "cannot mount the host's root"
lower=/host
case " $(cat /proc/cmdline) " in
*' casemate.systemd '*)
	mount -t 9p -o "ro,$plan9,cache=loose" tree /tree || fail "cannot mount the systemd tree"
	lower=/tree:/host
	;;
esac
mount -t tmpfs -o mode=755 tmpfs /upper
mkdir /upper/up /upper/work
mount -t overlay -o "lowerdir=$lower,upperdir=/upper/up,workdir=/upper/work" overlay /new ||
	fail "cannot mount the overlay"
for mounted in proc sys dev; do
	mount --move /$mounted /new/$mounted
done
mount -t tmpfs -o mode=755 tmpfs /new/run
mkdir /new/run/casemate-vm
mount -t 9p -o "rw,$plan9,cache=none" control /new/run/casemate-vm ||
	fail "cannot mount the control directory"
mount -t tmpfs -o mode=1777 tmpfs /new/tmp
mkdir -p /new/lib/modules
mount -t 9p -o "ro,$plan9,cache=loose" modules /new/lib/modules || fail "cannot mount the modules"

case $lower in
/tree:*)
	# only what the tree has may start, not the services that the host has installed
	for own in systemd tmpfiles.d sysusers.d sysctl.d modules-load.d; do
		[ ! -d /tree/usr/lib/$own ] || mount --bind /tree/usr/lib/$own /new/usr/lib/$own ||
			fail "cannot hide the host's $own"
		rm -rf "/new/etc/$own"
		[ ! -d "/tree/etc/$own" ] || cp -a "/tree/etc/$own" /new/etc/
	done
	# by this file systemd would believe that it is in a container and not read its arguments
	rm -f /new/.dockerenv
	# shellcheck disable=SC1091
	. /new/run/casemate-vm/guest/systemd-units.sh
	exec switch_root /new /lib/systemd/systemd
	;;
*) exec switch_root /new /bin/bash /run/casemate-vm/guest/init.sh ;;
esac
