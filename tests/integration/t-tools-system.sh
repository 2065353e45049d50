#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a system gives its programs, in a jail: shells, files in /tmp and /var/tmp, descriptors as
# files, users, names, packages, languages, fonts, terminals.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/t-tools-common.sh"

# inside NAME WANT SCRIPT: of bash
inside() {
	run run -- bash -c "$3"
	expect_out "$2" "$1"
}

begin 'shells'
start_files
inside 'process substitution' 'a
b' 'cat <(echo a) <(echo b)'
inside '/dev/fd and /dev/stdin' 'x y z' 'echo "$(echo x | cat /dev/stdin) $(cat /dev/fd/5 5< <(echo y)) $(exec 7< <(echo z); cat /dev/fd/7)"'
inside 'to /dev/stdout and /dev/stderr' 'o' 'echo o >/dev/stdout; echo e >/dev/stderr'
expect_stderr e 'both'
echo from a pipe | run run -- sh -c 'cat /dev/stdin; echo tee | tee /dev/stderr'
is "$(out) $(err)" 'from a pipe
tee tee' 'and from /dev/stdin'
inside 'a here-document and a here-string' '1 2' 'cat <<<"$(cat <<END
1 2
END
)"'
inside 'a coprocess' 'through' 'coproc cat; echo through >&"${COPROC[1]}"; read -r x <&"${COPROC[0]}"
	echo "$x"; kill $!'
run run -- bash -lc 'echo $0; shopt -q login_shell && echo login; type -t ls'
has login 'a login shell'
expect_stderr '' 'whose profile says nothing'
inside 'its PATH is that of others' "$(cm run -- sh -c 'echo "$PATH"')" 'echo $PATH'
if command -v script >/dev/null; then
	run run -- script -qec 'tty; stty size >/dev/null && echo size' /dev/null
	like "$(out)" '/dev/pts/*size*' 'script gives a terminal'
else
	skip TOOLS 'no script' 'script gives a terminal'
fi
if need TOOLS less 'a pager'; then
	run run -- sh -c 'seq 3 | less; seq 100 >/tmp/f; less -F /tmp/f | tail -n 1'
	expect_out '1
2
3
100' 'less'
fi
inside 'a FIFO' 'f' 'mkfifo /tmp/f; echo f >/tmp/f & cat /tmp/f'
inside 'jobs and signals' 'caught
143' 'trap "echo caught" USR1; kill -USR1 $$; sleep 30 & kill $!; wait $!; echo $?'
inside 'nproc, date, uname' 'ok' '[ "$(nproc)" -ge 1 ] && date >/dev/null && [ "$(uname -s)" = Linux ] &&
	[ "$(uname -n)" = "$(cat /etc/hostname)" ] && echo ok'
finish

begin 'files'
start_files
inside 'mktemp, also in /var/tmp and $TMPDIR' '1777 1777
ok' 'stat -Lc %a /tmp /var/tmp | tr "\n" " " | sed "s/ $/\n/"
	mktemp >/dev/null && mktemp -p /var/tmp >/dev/null && mktemp -d -t x.XXXXXX >/dev/null && echo ok'
inside 'programs run from /tmp, the home and /dev/shm' 'ran
ran
ran' 'for d in /tmp ~ /dev/shm; do printf "#!/bin/sh\necho ran\n" >$d/x; chmod +x $d/x; $d/x; done'
inside 'locks' 'locked' 'flock /tmp/lock sh -c "flock -n /tmp/lock true || echo locked"'
inside 'links, times, attributes' 'ok' 'cd /tmp && touch a && ln a b && ln -s a c && touch -d @0 a &&
	cp -a a d && mv d e && truncate -s 1G e && fallocate -l 4096 f && [ a -ef b ] && chmod 700 a && echo ok'
inside 'tar and its owners' '0 x' 'cd /tmp && mkdir t && echo x >t/x && tar -czf t.tgz t &&
	rm -r t && tar -xzf t.tgz; echo $? "$(cat t/x)"'
run run -- df -P . /tmp ~ /dev/shm
is "$(out | wc -l)" 5 'df knows the file systems'
run run -- sh -c 'for d in /usr /etc /bin /var /sys /proc/sys /; do
	touch $d/cm 2>/dev/null && echo $d; done'
expect_out '' 'the system cannot be written'
finish

begin 'names'
start_files
inside 'getent' 'services protocols passwd group hosts' 'for x in "services http" "protocols tcp" \
	"passwd $(id -un)" "group $(id -gn)" "hosts localhost"; do
	getent $x >/dev/null && echo ${x% *}; done | tr "\n" " " | sed "s/ $/\n/"'
inside 'who one is' "$HOME 1000 1000" 'echo ~ "$(id -u)" "$(id -g)"'
inside 'whose the home is' 'ok' '[ "$(stat -c %U ~)" = "$(id -un)" ] && [ "$(whoami)" = "$USER" ] && echo ok'
inside 'a name that does not exist' '2' 'getent hosts www.example.org; echo $?'
inside 'the host has a name of its own' 'ok' 'getent hosts "$(uname -n)" >/dev/null && echo ok'
inside 'the time zone' "$(date -d @0 +%Z)" 'date -d @0 +%Z'
finish

begin 'packages'
if need DPKG dpkg 'dpkg'; then
	start_files
	is "$(cm run -- dpkg -l 2>"$work/err" | wc -l)" "$(dpkg -l | wc -l)" \
		'dpkg -l lists what the host has'
	run run -- sh -c 'dpkg -S /bin/sh >/dev/null; dpkg-query -W -f "\${Status}\n" bash'
	expect_out 'install ok installed' 'dpkg-query'
fi
if need TOOLS dpkg-checkbuilddeps 'build dependencies'; then
	mkdir debian
	printf 'Source: app\nBuild-Depends: bash, no-such-package-of-ours\n\nPackage: app\nArchitecture: any\n' \
		>debian/control
	give debian
	start_files
	run run -- dpkg-checkbuilddeps
	like "$(err)" '*nmet build dependencies: no-such-package-of-ours' 'dpkg-checkbuilddeps'
	run run -- dpkg-architecture -qDEB_HOST_ARCH
	expect_out "$(dpkg --print-architecture)" 'dpkg-architecture'
fi
finish

begin 'languages and fonts'
start_files
is "$(cm run -e LC_ALL=C.UTF-8 -- locale 2>&1)" "$(LC_ALL=C.UTF-8 locale)" 'locale'
is "$(cm run -- locale -a 2>&1)" "$(locale -a)" 'the languages of the host'
inside 'characters are characters' '3' 'LC_ALL=C.UTF-8; x=äöü; echo ${#x}'
if need TOOLS fc-list 'fonts'; then
	run run -- sh -c 'fc-list | sort'
	is "$(out)" "$(fc-list | sort)" 'fc-list lists those of the host'
	expect_stderr '' 'without complaint'
fi
inside 'terminals are known' 'ok' 'for t in xterm-256color screen-256color linux dumb; do
	TERM=$t tput cols >/dev/null || exit 1; done; echo ok'
run run -- sh -c 'openssl x509 -noout -subject -in "$(ls /etc/ssl/certs/*.pem | head -n 1)"
	ls /etc/ssl/private'
like "$(out)" 'subject=*' 'certificates are there'
has "*/etc/ssl/private*No such file*" 'and private keys are not'
finish

begin 'other compilers'
start_files
if need PERL perl 'perl'; then
	run run -- perl -MPOSIX -MSocket -MFile::Temp -e 'print getpwuid($<) ? "ok\n" : "no\n"'
	expect_out ok 'perl'
fi
if need TCL tclsh 'tcl'; then
	echo 'puts [expr 6*7]' | run run -- tclsh
	expect_out 42 'tclsh'
fi
if need FORTRAN gfortran 'Fortran'; then
	run run -- sh -c 'printf "      PRINT *, 6*7\n      END\n" | gfortran -x f77 -o /tmp/a - && /tmp/a'
	expect_out '          42' 'gfortran'
fi
if need GO go 'Go'; then
	run run -- sh -c 'cd /tmp && go mod init app 2>/dev/null &&
		printf "package main\nfunc main() { println(42) }\n" >a.go && go run . 2>&1'
	expect_out 42 'go run'
fi
if need RUBY ruby 'ruby'; then
	run run -- ruby -retc -e 'puts Etc.getpwuid.dir'
	expect_out "$HOME" 'ruby'
fi
if need PASCAL fpc 'Pascal'; then
	run run -- sh -c 'cd /tmp && echo "begin writeln(6*7) end." >a.pas && fpc a.pas >/dev/null && ./a'
	expect_out 42 'fpc'
fi
if need COBOL cobc 'COBOL'; then
	run run -- sh -c 'cd /tmp && cobc -x -free - -o a && ./a' <<'COBOL'
identification division.
program-id. a.
procedure division.
    display 42.
COBOL
	expect_out 42 'cobc'
fi
if need ADA gnatmake 'Ada'; then
	run run -- sh -c 'cd /tmp && cat >a.adb && gnatmake -q a.adb && ./a' <<'ADA'
with Ada.Text_IO;
procedure A is
begin
   Ada.Text_IO.Put_Line ("42");
end A;
ADA
	expect_out 42 'gnatmake'
fi
finish

done_testing
