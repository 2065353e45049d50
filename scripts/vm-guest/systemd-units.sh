# SPDX-License-Identifier: Apache-2.0
# Sourced by initrd.sh: the units of the virtual machine with systemd.
# shellcheck shell=dash
#
# The command runs once the user manager of the test user is up, as it is for a user who is
# logged in; a target of its own keeps out everything that is not needed for that.
units=/new/etc/systemd/system

cat >$units/casemate-vm.target <<'U'
[Unit]
Description=Casemate test machine
Requires=basic.target dbus.socket systemd-logind.service casemate-vm.service
After=basic.target dbus.socket systemd-logind.service
AllowIsolate=yes
U
cat >$units/casemate-vm.service <<'U'
[Unit]
Description=The command that the machine was started for
Requires=systemd-logind.service user@1000.service
After=basic.target dbus.socket systemd-logind.service systemd-user-sessions.service user@1000.service

[Service]
# not oneshot: with that the machine would be "starting" for as long as the command runs
Type=exec
ExecStart=/bin/bash /run/casemate-vm/guest/command.sh
ExecStopPost=/bin/bash -c 'echo o >/proc/sysrq-trigger'
StandardOutput=journal+console
TimeoutStartSec=infinity
U
mkdir -p /new/var/lib/systemd/linger
: >/new/var/lib/systemd/linger/casemate
# no clock, network or machine identity to wait for
ln -sf /dev/null $units/systemd-timesyncd.service
ln -sf /dev/null $units/systemd-networkd.service
echo casemate-vm >/new/etc/hostname
: >/new/etc/fstab
