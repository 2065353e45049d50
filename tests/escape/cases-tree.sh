# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154
# What of the host's files a jail sees and writes, and what stands in the way while it is made.

# A directory of the host beside the workspace, with something in it that nobody inside may see.
make_outside() {
	mkdir "$work/outside"
	echo SECRET >"$work/outside/secret"
	give "$work/outside"
}

# A service of the host's, at a path or "@NAME"; its pid in $served
serve() {
	"${as[@]}" "$top/probes/probe_serve" "$1" >"$work/ready" &
	served=$!
	until_true 5 grep -q ready "$work/ready"
}

unserve() {
	kill "$served" 2>/dev/null
	wait "$served" 2>/dev/null
}

case_exe() {
	local before
	before=$(sha256sum "$top"/bin/*)
	use try
	attack -- "${weaker[@]}" sh -c './probe_try "$@"; exit' sh read:/proc/1/exe \
		readlink:/proc/1/exe -- ./probe_try read:/proc/1/exe readlink:/proc/1/exe <<-'END'
		read /proc/1/exe: refused EACCES
		readlink /proc/1/exe: refused EACCES
	END
	is "$(sha256sum "$top"/bin/*)" "$before" 'the programs of the host are what they were'
	is "$(find "$top/bin" -perm /6000)" '' 'none of them is set-id'
}

case_descriptors() {
	use fds
	make_outside
	attack -- sh -c "cd / && exec $work/w/probe_fds" -- ./probe_fds 9<"$work/outside" <<-'END'
		descriptor above 2: refused
		descriptor of a directory: refused
		directory outside the root: refused
	END
}

case_workdir() {
	local n shown=''
	make_outside
	# the control: a shell goes where the descriptor leads
	is "$(as_caller sh -c 'cd /proc/self/fd/9 && cat secret' 9<"$work/outside")" SECRET \
		'outside a descriptor leads there'
	exec 9<"$work/outside"
	for n in /proc/self/fd/{0..24} /dev/fd/9 /proc/1/cwd /proc/1/root /proc/self/root/../..; do
		cm run --workdir "$n" -- sh -c "cat secret outside/secret ../../../../../../..$work/outside/secret" \
			>"$work/out" 2>"$work/err"
		! grep -q SECRET "$work/out" || shown="$shown $n"
	done
	is "$shown" '' 'no working directory is outside, in a temporary session'
	for n in /proc/self/fd/{0..16}; do
		cm run --session workdir --workdir "$n" -- cat secret "../../../../../../..$work/outside/secret" \
			>"$work/out" 2>"$work/err"
		# with control groups of v2 one of init's is a directory
		[ $? = 125 ] || shown="$shown $n"
	done
	exec 9<&-
	is "$shown" '' 'nor is one started in one that runs'
	run run --workdir /proc/self/fd/3 -- true
	is "$rc" 125 'a descriptor of ours is no directory to work in'
	run rm --files workdir
	allow '/state/|/(run|var/lib)/casemate|/runtime/|/home/'
}

case_secret() {
	local paths p
	make_outside
	use try
	paths=("read:$work/outside/secret" "read:/proc/self/root$work/outside/secret"
		"read:/proc/self/cwd/../outside/secret" "read:/proc/1/root$work/outside/secret"
		"read:/proc/self/task/1/root$work/outside/secret" list:/proc/1/cwd/)
	for p in "${paths[@]}"; do
		case $p in
		*/proc/1/* | *list*) echo "${p/:/ }: refused EACCES" ;;
		*) echo "${p/:/ }: refused ENOENT" ;;
		esac
	done >"$work/expect"
	attack -- "${weaker[@]}" ./probe_try "${paths[@]}" -- ./probe_try "${paths[@]}" <"$work/expect"
}

case_mounts() {
	use mounts
	# as root outside the machine's mounts are seen, which have everything; a user's are no less
	attack -- "${weaker[@]}" sh -c 'mount --make-rshared / && mount -t tmpfs -o size=0,nr_inodes=0 none /mnt &&
		./probe_mounts' -- ./probe_mounts <<-'END'
		set-id mount: refused
		device mount: refused
		shared mount: refused
		unbounded tmpfs: refused
		writable root: refused
		writable control group: refused
	END
}

case_propagation() {
	! is_user || {
		skip ROOT 'only root mounts on the host' 'no mount crosses'
		return
	}
	mkdir "$work/w/in"
	mount --bind "$work/w" "$work/w" && mount --make-shared "$work/w"
	ok 'a workspace whose mount is shared'
	cd "$work/w" || return
	start_files
	unshare --mount --propagation slave sh -c 'until [ -e stop ]; do sleep 0.05; done
		ls in' >"$work/control" &
	bg_control=$!
	start run -- sh -c 'touch up; until [ -e stop ]; do sleep 0.05; done; ls in'
	until_true 5 test -e up
	mount -t tmpfs none "$work/w/in" && touch "$work/w/in/mark" "$work/w/stop"
	wait_bg
	wait $bg_control
	is "$(cat "$work/control")" mark 'a mount of the host reaches a namespace that is a slave'
	is "$(cat "$work/out")" '' 'and no jail'
	cd "$top" || return
	umount "$work/w/in"
	umount "$work/w"
	rm -f "$work/w/up" "$work/w/stop"
}

# A root file system of the probe alone.
make_rootfs() {
	rm -rf "$work/rootfs"
	mkdir -p "$work/rootfs/bin" "$work/rootfs/etc" "$work/rootfs/dev" "$work/rootfs/proc"
	cp "$top/probes/probe_try" /bin/busybox "$work/rootfs/bin/"
	ln -s busybox "$work/rootfs/bin/sh"
	ln -s busybox "$work/rootfs/bin/cat"
	ln -s busybox "$work/rootfs/bin/stat"
	give "$work/rootfs"
}

in_rootfs() { # COMMAND...
	run run --no-workspace --rootfs "$work/rootfs" -- "$@"
}

in_rootfs_shown() { cm run --no-workspace --rootfs "$work/rootfs" -- "$@"; }

case_rootfs() {
	local name outside
	need BUSYBOX busybox 'a root file system of our own' || return
	make_outside
	outside=$(find "$work/outside" -printf '%p %y %s %T@\n')
	make_rootfs
	in_rootfs sh -c 'echo well'
	is "$(out)" well 'a decent one works'
	for name in dev proc etc sys; do
		make_rootfs
		rm -rf "$work/rootfs/$name"
		ln -s "$work/outside" "$work/rootfs/$name"
		in_rootfs sh -c 'echo started'
		is "$rc:$(out)" 125: "/$name that is a link stops the start"
	done
	make_rootfs
	ln -s /proc/sys/kernel/core_pattern "$work/rootfs/dev/null"
	in_rootfs sh -c 'stat -c "%F %t:%T" /dev/null; echo "|evil" >/dev/null; cat /proc/sys/kernel/core_pattern'
	is "$(out)" "character special file 1:3
$(cat /proc/sys/kernel/core_pattern)" 'its /dev/null is not used'
	for name in passwd group; do
		make_rootfs
		ln -s "$work/outside/secret" "$work/rootfs/etc/$name"
		in_rootfs cat "/etc/$name"
		is "$rc:$(grep -c SECRET "$work/out")" 0:0 "a link in its /etc/$name is not read"
	done
	for name in lib usr sbin; do
		make_rootfs
		ln -s "$work/outside" "$work/rootfs/$name"
		in_rootfs cat "/$name/secret"
		is "$(out)" '' "/$name that leads out shows nothing"
		ln -sfn "../../../../../../../..$work/outside" "$work/rootfs/$name"
		in_rootfs cat "/$name/secret"
		is "$(out)" '' "nor by a relative way"
	done
	is "$(find "$work/outside" -printf '%p %y %s %T@\n')" "$outside" 'the host has what it had'
	allow '/state/'
}

# flip A B ROUNDS COMMAND...: the command while the two names change places
flip() {
	local racer i rounds=$3
	"${as[@]}" "$top/probes/probe_flip" "$1" "$2" 2>/dev/null &
	racer=$!
	shift 3
	for ((i = 0; i < rounds; i++)); do
		"$@" >>"$work/shown" 2>>"$work/errors"
	done
	kill $racer
	wait $racer 2>/dev/null
}

# What a round showed that it must not, and whether there were rounds of either kind.
judge_race() { # NAME
	is "$(grep -c SECRET "$work/shown")" 0 "$1: nothing of outside is seen"
	grep -q well "$work/shown"
	ok "$1: some rounds went well"
	echo "# $1: $(grep -c well "$work/shown") well, $(grep -c '^casemate: ' "$work/errors") refused"
	: >"$work/shown"
	: >"$work/errors"
}

case_race() {
	local outside before
	make_outside
	mkdir -p "$work/outside/b/dst" "$work/w/a/b/dst" "$work/vol" "$work/trees"
	echo SECRET >"$work/outside/b/dst/secret"
	echo inside >"$work/vol/file"
	# the state directory is refused as a source, and the link leads to it
	case $identity in
	root) outside=/var/lib/casemate/outside ;;
	*) outside=$XDG_STATE_HOME/casemate/outside ;;
	esac
	cm run --no-workspace -- true
	mkdir -p "$outside"
	echo SECRET >"$outside/secret"
	ln -s "$outside" "$work/trees/link"
	mkdir "$work/trees/dir"
	ln -s "$work/outside" "$work/w/a2"
	give "$work/w" "$work/trees" "$work/vol" "$work/outside"
	! is_user || give "$outside"
	before=$(find "$work/outside" "$work/w/a" -printf '%y %s %f\n' | sort)

	# a source that is a directory when it is looked at and a link when it is mounted
	flip "$work/trees/dir" "$work/trees/link" "$rounds" \
		cm run --no-workspace -v "$work/trees/dir:/data" -- \
		sh -c 'cat /data/secret 2>/dev/null; echo well'
	judge_race "a volume's source"
	# a mount point below a directory that becomes a link
	flip "$work/w/a" "$work/w/a2" "$rounds" \
		cm run -v "$work/vol:$work/w/a/b/dst" -- \
		sh -c "grep $work/outside /proc/self/mountinfo && echo SECRET
			cat $work/outside/b/dst/secret 2>/dev/null; cat a/b/dst/file && echo well"
	judge_race 'a mount point'
	[ -L "$work/w/a2" ] || "$top/probes/probe_flip" "$work/w/a" "$work/w/a2" once
	# .git that is a directory, or a link to one outside
	git init -q "$work/w" && git init -q "$work/outside/git"
	echo SECRET >"$work/outside/git/.git/secret"
	ln -s "$work/outside/git/.git" "$work/w/git2"
	give "$work/w" "$work/outside"
	flip "$work/w/.git" "$work/w/git2" "$rounds" cm run -- \
		sh -c "grep $work/outside /proc/self/mountinfo && echo SECRET
			cat .git/secret git2/secret 2>/dev/null; echo well"
	judge_race 'the git directory'
	rm -rf "$work/outside/git"
	if ! need BUSYBOX busybox 'a root file system of our own'; then
		rm -rf "$outside"
		return
	fi
	make_rootfs
	echo root:x:0:0::/:/bin/sh >"$work/rootfs/etc/passwd"
	ln -s "$outside/secret" "$work/rootfs/etc/passwd2"
	give "$work/rootfs"
	flip "$work/rootfs/etc/passwd" "$work/rootfs/etc/passwd2" "$rounds" \
		in_rootfs_shown sh -c 'cat /etc/passwd; echo well'
	judge_race "a root file system's passwd"
	is "$(find "$work/outside" "$work/w/a" -printf '%y %s %f\n' | sort)" "$before" \
		'nothing was made on the host'
	rm -rf "$outside"
	allow '/w/|/state/'
}

case_proc() {
	local files f
	use try
	files=(write:/proc/sys/kernel/core_pattern write:/proc/sys/kernel/modprobe
		write:/proc/sys/vm/drop_caches write:/proc/sys/user/max_user_namespaces
		write:/proc/sysrq-trigger read:/proc/kcore read:/proc/kmsg read:/proc/kallsyms
		read:/proc/keys read:/proc/timer_list write:/proc/self/oom_score_adj)
	for f in "${!files[@]}"; do
		# what this kernel does not have
		[ -e "${files[$f]#*:}" ] || unset "files[$f]"
	done
	for f in "${files[@]}"; do
		case $f in
		*/proc/self/*) echo "${f/:/ }: reached" ;;
		*) echo "${f/:/ }: refused EACCES" ;;
		esac
	done >"$work/expect"
	attack -- "${weaker[@]}" ./probe_try "${files[@]}" -- ./probe_try "${files[@]}" <"$work/expect"
	attack -- "${weaker[@]}" ./probe_try write:/sys/kernel/mm/transparent_hugepage/enabled list:/sys/class \
		list:/sys/kernel/debug list:/boot read:/etc/shadow list:/sys/fs/bpf -- \
		./probe_try write:/sys/kernel/mm/transparent_hugepage/enabled list:/sys/class \
		list:/sys/kernel/debug list:/boot read:/etc/shadow list:/sys/fs/bpf <<-'END'
		write /sys/kernel/mm/transparent_hugepage/enabled: refused EACCES
		list /sys/class: refused ENOENT
		list /sys/kernel/debug: refused ENOENT
		list /boot: refused ENOENT
		read /etc/shadow: refused ENOENT
		list /sys/fs/bpf: refused ENOENT
	END
}

# A /proc that somebody has mounted over is not written through, and no weaker jail is made.
case_fake_proc() {
	! is_user || {
		skip ROOT "only root covers the host's /proc" 'a covered /proc'
		return
	}
	cm run -- true
	ok 'the control starts'
	unshare --mount sh -c 'mount -t tmpfs none /proc/sys && exec "$@"' sh \
		"$casemate" run -- sh -c 'echo started' >"$work/out" 2>"$work/err"
	rc=$?
	is "$rc:$(out)" 125: 'with /proc/sys covered nothing starts'
}

case_groups() {
	use try
	if ! has_groups; then
		skip CGROUP 'no control groups for this caller' 'control groups'
		return
	fi
	[ -d /sys/fs/cgroup/memory ] || {
		skip CGROUP1 'no v1 memory controller' 'control groups of v1'
		return
	}
	local at=/sys/fs/cgroup/memory
	attack --memory 64M -- "${weaker[@]}" ./probe_try write:$at/cgroup.procs write:$at/tasks \
		write:$at/release_agent write:$at/notify_on_release write:$at/memory.limit_in_bytes -- \
		./probe_try write:$at/cgroup.procs write:$at/tasks write:$at/release_agent \
		write:$at/notify_on_release write:$at/memory.limit_in_bytes <<-'END'
		write /sys/fs/cgroup/memory/cgroup.procs: refused EACCES
		write /sys/fs/cgroup/memory/tasks: refused EACCES
		write /sys/fs/cgroup/memory/release_agent: refused ENOENT
		write /sys/fs/cgroup/memory/notify_on_release: refused EACCES
		write /sys/fs/cgroup/memory/memory.limit_in_bytes: refused EACCES
	END
}

case_volumes() {
	use try
	make_outside
	mkdir "$work/vol"
	mkfifo "$work/vol/fifo"
	: >"$work/vol/file"
	give "$work/vol"
	serve "$work/vol/sock"
	"${as[@]}" cat <>"$work/vol/fifo" >"$work/fifo" &
	reader=$!
	attack -v "$work/vol:/data:ro" -- ./probe_try -C "$work/vol" connect:sock fifo:fifo write:file -- \
		./probe_try -C /data connect:sock fifo:fifo write:file <<-'END'
		connect sock: refused ECONNREFUSED
		fifo fifo: refused EACCES
		write file: refused EROFS
	END
	kill $reader 2>/dev/null
	wait $reader 2>/dev/null
	unserve
	rm -rf "$work/vol"
}

# The user's own tools, which the agent's id could write.
case_tools() {
	use try
	mkdir -p "$HOME/.cargo/bin" "$work/copy"
	echo tool | tee "$HOME/.cargo/bin/tool" >"$work/copy/tool"
	chmod 755 "$HOME/.cargo/bin/tool"
	give "$HOME/.cargo" "$work/copy"
	start_files
	run run -- cat "$HOME/.cargo/bin/tool"
	is "$(out)" tool 'they are there'
	attack -- ./probe_try -C "$work/copy" write:tool create:other -- \
		./probe_try -C "$HOME/.cargo/bin" write:tool create:other <<-'END'
		write tool: refused EROFS
		create other: refused EROFS
	END
	rm -rf "$HOME/.cargo"
	allow '/home/'
}

case_read_only() {
	use try
	mkdir "$work/copy"
	echo tool >"$work/copy/tool"
	give "$work/copy"
	attack -v "$work/copy/tool:/srv/tool:ro" -- ./probe_try -C "$work/copy" write:tool -- \
		./probe_try -C /srv write:tool <<-'END'
		write tool: refused EROFS
	END
}

case_refusals() {
	local source good link=$work/link
	mkdir "$work/vol" "$work/sockets"
	give "$work/vol" "$work/sockets"
	: >"$work/sockets/agent"
	ln -s /etc "$link"
	mkdir -p "$work/bound"
	good=$(cm run --no-workspace -v "$work/vol:/data" -- echo well)
	is "$good" well 'the control: a volume of the caller'
	local sources=(/etc /etc/ //etc /etc/. /usr/../etc /etc/../etc "$link" "$link/ssl" /etc/ssl
		/run /proc /proc/self /sys /dev /dev/shm / /home /root/.. "$HOME" "$HOME/" "$HOME/../home"
		"$XDG_STATE_HOME/casemate" "$XDG_RUNTIME_DIR/casemate" "$work/sockets/agent"
		"$work/sockets")
	if ! is_user; then
		mount --bind /etc "$work/bound"
		sources+=("$work/bound" /var/lib/casemate /var/lib/casemate/sessions /run/casemate)
	else
		mkdir -p "$XDG_STATE_HOME/casemate" "$XDG_RUNTIME_DIR/casemate"
		give "$XDG_STATE_HOME" "$XDG_RUNTIME_DIR"
	fi
	for source in "${sources[@]}"; do
		[ -e "$source" ] || continue
		SSH_AUTH_SOCK=$work/sockets/agent run run --no-workspace -v "$source:/data" -- echo seen
		is "$rc:$(out)" 125: "'${source/#$work/WORK}' is no volume"
		SSH_AUTH_SOCK=$work/sockets/agent run run --workspace "$source" -- echo seen
		is "$rc:$(out)" 125: "nor a workspace"
	done
	! mountpoint -q "$work/bound" || umount "$work/bound"
	allow '/state/|/runtime/'
}

case_state() {
	use try
	local state=$XDG_STATE_HOME runtime=$XDG_RUNTIME_DIR at
	is_user || state=/var/lib runtime=/run
	mkdir -p "$state/casemate" "$runtime/casemate"
	chmod 700 "$state/casemate" "$runtime/casemate"
	! is_user || give "$state" "$runtime"
	for at in "$state" "$runtime"; do
		attack -- ./probe_try "list:$at/casemate/.." "create:$at/casemate/made" -- \
			./probe_try "list:$at/casemate/.." "create:$at/casemate/made" <<-END
			list $at/casemate/..: refused ENOENT
			create $at/casemate/made: refused ENOENT
		END
		rm "$at/casemate/made"
	done
	allow '/state/|/runtime/'
}

# Names in a shared /tmp that somebody could have made before.
case_temporary() {
	need STRACE strace 'names of temporary files' || return
	as_caller strace -f -qq -e trace=open,openat,openat2,creat,mkdir,mkdirat,symlink,symlinkat \
		-o "$work/trace" "$casemate" run --no-workspace -- true >"$work/out" 2>"$work/err"
	is "$?" 0 'the run'
	grep -q 'openat' "$work/trace"
	ok 'the trace saw it'
	is "$(grep -E '"/(var/)?tmp/' "$work/trace" | grep -vF "\"$top" | grep -E 'CREAT|mkdir|symlink')" \
		'' 'no name in a shared directory is made'
}
