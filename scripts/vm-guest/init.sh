# SPDX-License-Identifier: Apache-2.0
# Process 1 of the virtual machine without systemd: mounts what an init would, runs the command.
# shellcheck shell=bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
control=/run/casemate-vm

mkdir -p /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
ln -sf /proc/self/fd /dev/fd
for n in 0:stdin 1:stdout 2:stderr; do
	ln -sf "/proc/self/fd/${n%:*}" "/dev/${n#*:}"
done
hostname casemate-vm
ip link set lo up

cgroup_v1() {
	local controllers
	mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
	for controllers in cpu,cpuacct cpuset memory devices freezer blkio pids; do
		mkdir "/sys/fs/cgroup/$controllers"
		# newer kernels are built without the old memory and cpuset controllers
		mount -t cgroup -o "$controllers" cgroup "/sys/fs/cgroup/$controllers" ||
			rmdir "/sys/fs/cgroup/$controllers"
	done
}

cgroup_v2() {
	local pid controller controllers
	mount -t cgroup2 -o nsdelegate cgroup2 /sys/fs/cgroup
	# a group with processes cannot hand controllers down
	mkdir /sys/fs/cgroup/init.scope
	while read -r pid; do
		echo "$pid" >/sys/fs/cgroup/init.scope/cgroup.procs
	done </sys/fs/cgroup/cgroup.procs 2>/dev/null
	read -ra controllers </sys/fs/cgroup/cgroup.controllers
	for controller in "${controllers[@]}"; do
		echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
	done
}

case $(cat $control/cgroup) in
v2) cgroup_v2 ;;
hybrid)
	cgroup_v1
	mkdir /sys/fs/cgroup/unified
	mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
	;;
v1) cgroup_v1 ;;
esac

setsid /bin/bash $control/guest/command.sh </dev/null
echo o >/proc/sysrq-trigger
# process 1 must not end before the machine does
sleep 60
