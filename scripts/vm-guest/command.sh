# SPDX-License-Identifier: Apache-2.0
# In the virtual machine, with or without systemd: run the command and hand its status back.
# shellcheck shell=bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root USER=root LOGNAME=root LANG=C.UTF-8 TERM=dumb CASEMATE_VM=1
control=/run/casemate-vm

# shared directories: "tag path" a line
while read -r tag path; do
	mkdir -p "$path"
	mount -t 9p -o rw,trans=virtio,version=9p2000.L,msize=512000,cache=mmap "$tag" "$path"
done <$control/shares

cut -d ' ' -f 1 /proc/uptime >$control/booted
mapfile -d '' -t command <$control/command
cd "$(cat $control/directory)" 2>/dev/null || cd /
status=0
"${command[@]}" </dev/null >>$control/out 2>>$control/err || status=$?
sync
echo "$status" >$control/status.new
mv $control/status.new $control/status
sync
