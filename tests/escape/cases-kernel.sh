# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154
# What of the kernel a jail reaches: system calls, sockets, terminals, capabilities, set-id bits.

case_syscalls() {
	use syscalls
	attack -- "${weaker[@]}" ./probe_syscalls -- ./probe_syscalls <<-'END'
		io_uring_setup: refused ENOSYS
		io_uring_enter: refused ENOSYS
		io_uring_register: refused ENOSYS
		userfaultfd: refused ENOSYS
		unshare user: refused EPERM
		clone user: refused EPERM
		unshare mount: refused EPERM
		clone mount: refused EPERM
		unshare pid: refused EPERM
		clone pid: refused EPERM
		unshare net: refused EPERM
		clone net: refused EPERM
		unshare ipc: refused EPERM
		clone ipc: refused EPERM
		unshare uts: refused EPERM
		clone uts: refused EPERM
		unshare cgroup: refused EPERM
		clone cgroup: refused EPERM
		unshare time: refused EPERM
		clone3: refused ENOSYS
		clone3 user: refused ENOSYS
		keyctl: refused ENOSYS
		bpf: refused EPERM
		perf_event_open: refused EPERM
		open_by_handle_at: refused EPERM
		fanotify_init: refused EPERM
		init_module: refused EPERM
		kexec_load: refused EPERM
		reboot: refused EPERM
		swapon: refused EPERM
		acct: refused EPERM
		syslog: refused EPERM
		settimeofday: refused EPERM
		sethostname: refused EPERM
		mount: refused EPERM
		umount2: refused EPERM
		pivot_root: refused EPERM
		chroot: refused EPERM
		fsopen: refused EPERM
		open_tree: refused EPERM
		move_mount: refused EPERM
		mount_setattr: refused EPERM
		setns: refused EPERM
	END
}

case_highbits() {
	use highbits
	attack -- "${weaker[@]}" ./probe_highbits -- ./probe_highbits <<-'END'
		vsock: refused EAFNOSUPPORT
		alg: refused EAFNOSUPPORT
		netfilter: refused EPROTONOSUPPORT
		TIOCSTI: refused EPERM
		TIOCLINUX: refused EPERM
		fchmod: refused EPERM
		fchmodat: refused EPERM
		openat: refused EPERM
		mknodat: refused EPERM
		lease: refused EACCES
		lease high: refused EACCES
		prlimit64: refused EPERM
		personality: refused EPERM
		clone user: refused EPERM
		i386: refused ENOSYS
		x32: refused ENOSYS
	END
}

case_sockets() {
	use sockets
	attack -- "${weaker[@]}" ./probe_sockets -- ./probe_sockets <<-'END'
		vsock: refused EAFNOSUPPORT
		alg: refused EAFNOSUPPORT
		packet: refused EAFNOSUPPORT
		raw: refused EPERM
	END
}

case_tty() {
	use tty
	need SCRIPT script 'a terminal for the control' || return
	attack --tty -- script -qec ./probe_tty /dev/null -- ./probe_tty <<-'END'
		TIOCSTI: refused EPERM
		TIOCSTI high: refused EPERM
		TIOCSETD: refused EPERM
		TIOCLINUX: refused EPERM
		/dev/tty TIOCSTI: refused EPERM
		/dev/tty TIOCSTI high: refused EPERM
		/dev/tty TIOCSETD: refused EPERM
		/dev/tty TIOCLINUX: refused EPERM
		TIOCCONS: refused EPERM
		KDSKBENT: refused EPERM
		VT_ACTIVATE: refused EPERM
	END
}

expect_caps() {
	cat <<-'END'
		CapInh: refused
		CapPrm: refused
		CapEff: refused
		CapBnd: refused
		CapAmb: refused
		new privileges: refused
		no filter: refused
		PR_SET_SECUREBITS: refused EPERM
		setgroups: refused EPERM
		setuid 0: refused ERRNO
		core file: refused
		capset: refused EPERM
	END
}

case_caps() {
	local id_errno=EPERM i
	# with one id inside there is no other to become
	! is_user || id_errno=EINVAL
	use caps
	expect_caps | sed "s/ERRNO/$id_errno/" >"$work/expect"
	attack -- "${weaker[@]}" setpriv --inh-caps +chown --ambient-caps +chown ./probe_caps -- \
		./probe_caps <"$work/expect"
	# in a session that runs, commands come another way
	for i in first second; do
		run run --session caps --workspace "$work/w" -- "$work/w/probe_caps"
		is "$(grep reached "$work/out")" '' "nothing in the $i command of a session"
		is "$(grep -c refused "$work/out")" 12 "all attempts of the $i command were made"
	done
	run stop caps
	allow '/state/|/(run|var/lib)/casemate|/runtime/|/home/'
}

case_setid() {
	use setid
	mkdir "$work/outside"
	give "$work/outside"
	allow '/w/setid'
	attack -- sh -c "cd $work/outside && $work/w/probe_setid" -- ./probe_setid <<-'END'
		chmod 4755: refused EPERM
		chmod 2755: refused EPERM
		fchmod 6755: refused EPERM
		fchmodat 4755: refused EPERM
		fchmodat2 4755: refused EPERM
		open 4755: refused EPERM
		creat 4755: refused EPERM
		mknod 4755: refused EPERM
		mkdir 2755: refused EPERM
		openat 2755: refused EPERM
		O_TMPFILE 4755: refused EPERM
		mknodat 6755: refused EPERM
		mkdirat 2755: refused EPERM
		openat2 4755: refused ENOSYS
		mknod memory: refused EACCES
	END
	is "$(find "$work/w" -perm /6000)" '' 'no set-id file is on the host'
	# the control made what is looked for
	[ -n "$(find "$work/outside" -perm /6000)" ]
	ok 'outside there is one'
}

case_suid() {
	! is_user || {
		skip ROOT 'a set-id file of root needs root' 'set-id programs give nothing'
		return
	}
	need SETCAP setcap 'file capabilities' || return
	use suid
	cp "$work/w/probe_suid" "$work/w/probe_fcap"
	chown 0:0 "$work"/w/probe_*
	chmod 4755 "$work"/w/probe_*
	setcap cap_dac_override+ep "$work/w/probe_fcap"
	start_files
	attack -- setpriv --reuid 12345 --regid 12345 --clear-groups ./probe_suid -- ./probe_suid <<-'END'
		euid: refused
		capability: refused
	END
	attack -- setpriv --reuid 12345 --regid 12345 --clear-groups ./probe_fcap -- ./probe_fcap <<-'END'
		euid: refused
		capability: refused
	END
	allow '/w/probe_'
	rm "$work"/w/probe_*
}
