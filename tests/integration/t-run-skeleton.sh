#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The root file system that starts share: who gets which, that no command changes it, and that it stays
# for as long as somebody has it.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Where they are, in this block.
skeletons() {
	if [ "$identity" = root ] && is_root; then
		echo /run/casemate/skeletons
	else
		echo "$XDG_RUNTIME_DIR/casemate/skeletons"
	fi
}

# None is there at the beginning: root's blocks share them.
begin_with_none() { # NAME
	begin "$1"
	rm -rf "$(skeletons)"
	start_files
}

names() { find "$(skeletons)" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort; }

# All that a command could have changed: modes, owners, times, contents, attributes.
state_of() { # DIRECTORY
	find "$1" -printf '%P %y %m %U:%G %n %s %T@ %C@ %l\n' | sort
	find "$1" -type f -perm /444 -exec md5sum {} + | sort -k 2
	getfattr -dR -m - --absolute-names "$1" 2>/dev/null
}

is_unused() { flock -n -x "$(skeletons)/$1/lock" true; }

# another N: a run with a mount point of its own
another() {
	mkdir -p "$work/many" && give "$work/many"
	run run -v "$work/many:/mnt/$1" -- true
}

# The skeleton of the run that waits in the background.
in_use() {
	local name
	for name in $(names); do
		is_unused "$name" || echo "$name"
	done
}

# What may be seen of a run that waits for it in its workspace.
wait_for='while [ ! -e go ]; do sleep 0.05; done'

begin_with_none 'what is refused'
run run --workspace /etc -- true
refused "refusing to use '/etc'*" '*' 'a workspace'
run run -v /etc:/mnt/x -- true
refused "refusing to use '/etc'*" '*' 'a volume'
is "$(ls -A "$(skeletons)" 2>/dev/null)" '' 'makes none'
finish

begin_with_none 'who shares'
mkdir "$work/other" && give "$work/other"
run run -- true
one=$(names)
is "$(wc -l <<<"$one")" 1 'one run makes one'
run run -- sh -c 'echo again'
is "$(out) $(names)" "again $one" 'the next one in the workspace finds it'
run run --memory '1G?' --network none -e A=b -- true
is "$(names)" "$one" 'with other limits and another environment, too'
run run --workspace "$work/other" -- true
is "$(names)" "$one" 'and in another workspace, where that has no mount point in the root'
run run -v "$work/other:/mnt/x" -- true
is "$(names | wc -l)" 2 'a volume is one more mount point'
run run -v "$work/other:/mnt/x" -- true
run run -- true
is "$(names | wc -l)" 2 'and both are found again'
for name in $(names); do
	is_unused "$name" || break
done
ok 'nobody holds one afterwards'
rm -rf "$(skeletons)"
run run -- echo works
is "$(out) $(names)" "works $one" 'when they are taken away while nothing runs, it is made again'
finish

# Everything that a file's owner can do to it, and everything that root could; prints what worked.
attack='
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def mount(*args):
    if libc.mount(*args) != 0:
        raise OSError(ctypes.get_errno(), "mount")
def umount(path):
    if libc.umount2(path.encode(), 2) != 0:
        raise OSError(ctypes.get_errno(), "umount")
def write(path, flags):
    fd = os.open(path, flags, 0o644)
    os.write(fd, b"x")
def over(path):
    with open("/tmp/new", "w") as f:
        f.write("x")
    os.rename("/tmp/new", path)
MS_BIND_REMOUNT = 4096 | 32
actions = {
    "write": lambda p: write(p, os.O_WRONLY),
    "append": lambda p: write(p, os.O_WRONLY | os.O_APPEND),
    "truncate": lambda p: os.truncate(p, 0),
    "create": lambda p: write(p + "/new", os.O_WRONLY | os.O_CREAT),
    "mkdir": lambda p: os.mkdir(p + "/newdir"),
    "mknod": lambda p: os.mkfifo(p + "/newfifo"),
    "symlink": lambda p: os.symlink("x", p + "/newlink"),
    "link": lambda p: os.link(p, p + ".link"),
    "chmod": lambda p: os.chmod(p, 0o777),
    "fchmod": lambda p: os.fchmod(os.open(p, os.O_RDONLY), 0o777),
    "chown": lambda p: os.chown(p, os.getuid(), os.getgid(), follow_symlinks=False),
    "utime": lambda p: os.utime(p, (1, 1), follow_symlinks=False),
    "setxattr": lambda p: os.setxattr(p, "user.x", b"x"),
    "over": over,
    "rename": lambda p: os.rename(p, p + ".moved"),
    "unlink": os.unlink,
    "rmdir": os.rmdir,
    "remount": lambda p: mount(None, p.encode(), None, MS_BIND_REMOUNT, None),
    "bind": lambda p: mount(b"/tmp", p.encode(), None, 4096, None),
    "umount": umount,
}
for path in sys.argv[1:]:
    for name, do in actions.items():
        try:
            do(path)
            print(name, path)
        except OSError as e:
            pass
'
targets=(/ /. /etc /etc/hosts /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache /bin /var
	/var/cache /dev /sys)
look='for f in /etc/hosts /etc/passwd /etc/group /etc/nsswitch.conf; do cat $f; done
ls -A / /dev; ls -al --time-style=full-iso /etc /var; stat -c "%a %u %y %z" / /etc /var /bin'

begin_with_none 'what a command can do to it'
run run -- /usr/bin/python3 -c "import os
os.mkdir('/tmp/d')
open('/tmp/d/f', 'w').write('abc')$attack" /tmp/d /tmp/d/f
for action in write append truncate create mkdir symlink link chmod fchmod utime over rename; do
	grep -q "^$action /tmp/d" "$work/out" || break
done
ok 'control: the same of its own is changed'
start run --timeout 60s -- sh -c "{ $look; } >tmp 2>&1; mv tmp before; $wait_for; { $look; } >after 2>&1"
until_true 20 test -s before
name=$(in_use)
is "$(wc -w <<<"$name")" 1 'a neighbour has one'
before=$(state_of "$(skeletons)/$name")
users=('')
! is_root || [ "$identity" != root ] || users+=('--user root')
for as_user in "${users[@]}"; do
	# shellcheck disable=SC2086
	run run $as_user -- /usr/bin/python3 -c "$attack" "${targets[@]}"
	is "$rc$(out)" 0 "nothing of it is changed${as_user:+ with $as_user}"
	is "$(state_of "$(skeletons)/$name")" "$before" 'nor outside'
done
touch go && give go
wait_bg
[ "$rc" = 0 ] && [ -s after ] && cmp -s before after
ok 'and the neighbour sees no change'
run run -- sh -c 'cat /etc/hosts /etc/passwd' && [ "$(names | wc -l)" = $((${#users[@]})) ]
ok 'they were of the same one'
rm -f go before after
finish

begin_with_none locks
start run --timeout 60s -- /usr/bin/python3 -c '
import fcntl, os, time
held = []
def take(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        held.append(fd)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        if path in ("/", "/etc", "/etc/hosts"):
            print("not locked", path, e)
dev = os.stat("/").st_dev
for top, dirs, files in os.walk("/"):
    dirs[:] = [d for d in dirs if os.lstat(os.path.join(top, d)).st_dev == dev and
               not os.path.ismount(os.path.join(top, d))]
    take(top)
    for f in files:
        path = os.path.join(top, f)
        if os.path.isfile(path) and not os.path.islink(path):
            take(path)
print("held", len(held), flush=True)
while not os.path.exists("go"):
    time.sleep(0.05)
'
until_true 20 grep -q held "$work/out"
like "$(out)" 'held [1-9]*' 'a command locks all that it sees of it'
name=$(names)
since=$(now_ms)
cm run -- echo same >"$work/second" 2>&1
is "$(cat "$work/second")" same 'another start in the workspace'
mkdir "$work/other" && give "$work/other"
cm run -v "$work/other:/mnt/x" -- echo other >"$work/second" 2>&1
is "$(cat "$work/second")" other 'and one that makes another'
[ $(($(now_ms) - since)) -lt 10000 ]
ok 'do not wait for it'
is "$(names | wc -l)" 2 'no third one was made'
inode=$(stat -c %i "$(skeletons)/$name/lock")
touch go && give go
wait_bg
is_unused "$name"
ok 'it is free when that has ended'
rm go
run run -- sh -c "find / -xdev -inum $inode; ls -l /proc/[0-9]*/fd 2>/dev/null | grep skeletons; ls -A / | grep -x 'dir\|file\|root/root'"
expect_out '' 'the lock is not to be seen inside'
finish

begin_with_none 'a file of /etc that changes'
if cp /usr/bin/busybox "$work/busybox" 2>/dev/null && ! ldd "$work/busybox" >/dev/null 2>&1; then
	mkdir -p "$work/fs/usr/bin" "$work/fs/etc" "$work/fs/tmp"
	cp "$work/busybox" "$work/fs/usr/bin/busybox"
	ln -s usr/bin "$work/fs/bin"
	file=$work/fs/etc/inputrc
	echo one >"$file"
	give "$work/fs"
	chmod 755 "$work/fs" "$work/fs/etc"
	shows() { # WANT NAME
		run run --rootfs "$work/fs" -- /bin/busybox cat /etc/inputrc
		is "$(out)" "$1" "$2"
	}
	shows one 'is copied'
	one=$(names)
	shows one 'and again'
	is "$(names)" "$one" 'of the same skeleton'
	touch -r "$file" "$work/stamp"
	printf 'two\n' >"$file"
	touch -r "$work/stamp" "$file"
	shows two 'written in place, with its size and time as before'
	printf 'six\n' >"$work/fs/etc/new"
	chmod 644 "$work/fs/etc/new"
	touch -r "$work/stamp" "$work/fs/etc/new"
	mv "$work/fs/etc/new" "$file"
	shows six 'replaced'
	chmod 600 "$file"
	shows '' 'closed'
	like "$(err)" '*inputrc*' 'it is not there then'
	chmod 644 "$file"
	shows six 'opened'
	mounts='grep -c " /etc/inputrc " /proc/self/mountinfo; cat /etc/inputrc'
	run run --rootfs "$work/fs" -- /bin/busybox sh -c "$mounts"
	expect_out $'0\nsix' 'and copied'
	chmod 755 "$file"
	run run --rootfs "$work/fs" -- /bin/busybox sh -c "$mounts"
	expect_out $'1\nsix' 'a program is mounted: where the copy lies nothing may be executable'
	ln -sf /etc/other "$file"
	run run --rootfs "$work/fs" -- /bin/busybox readlink /etc/inputrc
	expect_out /etc/other 'a link in its place'
	rm -f "$file"
	shows '' 'gone'
	is "$(ls "$work/fs/etc")" '' 'and nothing is made in it'
else
	skip TOOLS 'no static busybox' 'a file of /etc that changes'
fi
finish

begin_with_none 'while a session has it'
run run --session k -- sh -c 'cat /etc/hosts >hosts; ls / >ls'
name=$(names)
is "$(wc -l <<<"$name")" 1 'it has one'
bad=0
for i in $(seq 62); do
	another "$i"
	[ "$rc" = 0 ] || bad=$((bad + 1))
done
is "$bad" 0 'others start in sixty workspaces'
is "$(names | wc -l)" 48 'of which not all are kept'
[ -d "$(skeletons)/$name/root" ] && ! is_unused "$name"
ok 'the session, the oldest, keeps its own'
run run --session k -- sh -c 'cat /etc/hosts | cmp - hosts && ls / | cmp - ls && echo whole'
expect_out whole 'and goes on with it'
keeper=$(for pid in $(our_processes); do
	[ "$(readlink "/proc/$pid/exe")" != "$top/bin/casemate-keeper" ] ||
		grep -qE '^NSpid:.*[[:space:]]1$' "/proc/$pid/status" || echo "$pid"
done | head -n 1)
kill -KILL "$keeper"
until_true 10 is_unused "$name"
ok 'kill -9 of its keeper lets go of it'
another 63
[ ! -e "$(skeletons)/$name" ]
ok 'and so it is the next to go'
run run --session k -- sh -c 'cat /etc/hosts | cmp - hosts && ls / | cmp - ls && echo whole'
expect_out whole 'when it starts again it has one of the same kind'
is "$(names | grep -cxF "$name")" 1 'of the same name'
run stop k
is_unused "$name"
ok 'stop lets go of it'
run rm --files --force k
rm -rf "$work/many"
finish

begin_with_none 'mount points in a tree of the user'"'"'s'
if [ "$identity" = root ] && is_root; then
	# homes and workspace on one file system, as an ordinary user has them
	mkdir -m 700 "$work/var"
	mount --bind "$work/var" /var/lib/casemate
fi
mkdir "$work/data" && echo data >"$work/data/file" && give "$work/data"
start_files
for session in '' '--session m'; do
	for dir in missing deep/er; do
		# shellcheck disable=SC2086
		run run $session --workspace "$work/w" -v "$work/data:$work/w/$dir" -- true
		refused '*' '*' "${session:-a temporary one}: '$dir' is not there"
		like "$(err)" "*'$work/w/${dir%/*}'*" 'and it is that which is told'
		is "$(ls -A "$work/w")" '' 'and not made'
	done
	# shellcheck disable=SC2086
	run run $session --workspace "$work/w" -v "$work/data:$work/home/a/b" -- cat "$work/home/a/b/file"
	expect_out data 'control: below the home it is'
	[ -z "$(ls -A "$work/w")" ] && [ ! -e "$work/home/a" ]
	ok 'which is not that of the user'
	[ -z "$session" ] || run rm --files --force m
done
! is_root || [ "$identity" != root ] || umount /var/lib/casemate
finish

done_testing
