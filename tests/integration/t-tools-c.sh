#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# C in a jail: a package of Debian's from its sources with configure and make, cmake and ctest, both
# compilers, a debugger.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/t-tools-common.sh"
limit=240

begin 'configure, make, make check'
if need TOOLS cc 'hello'; then
	if (cd "$work/w" && fetch_source); then
		mkdir hello
		tar -xzf hello_*.orig.tar.gz -C hello --strip-components=1 2>/dev/null ||
			tar -xf hello_*.orig.tar.* -C hello --strip-components=1
		give "$work/w"
		start_files
		allow '/w/hello(/| )'
		cd hello || bail 'no hello'
		works HELLO 'hello is configured' -- ./configure --quiet --disable-nls
		works HELLO 'built' -- make -s -j2
		works HELLO 'and passes its own tests' -- make -s check
		has '# PASS:*' 'which ran'
		run run -- make -s install "DESTDIR=$work/w/hello/to"
		[ -x to/usr/local/bin/hello ]
		ok 'it is installed to a directory'
	else
		tail -n 3 "$top/apt.log" | sed 's/^/# /'
		skip SOURCES 'no source package can be fetched' 'hello'
	fi
fi
finish

begin 'cmake and ctest'
if need TOOLS cmake 'a project'; then
	put CMakeLists.txt <<-'CMAKE'
		cmake_minimum_required(VERSION 3.13)
		project(app C)
		find_package(Threads REQUIRED)
		enable_testing()
		add_library(part SHARED part.c)
		add_executable(app app.c)
		target_link_libraries(app part Threads::Threads)
		add_test(NAME app COMMAND app)
		set_target_properties(app PROPERTIES INSTALL_RPATH "\$ORIGIN/../lib")
		install(TARGETS app part)
	CMAKE
	put part.c <<-'C'
		int part(void)
		{
			return 42;
		}
	C
	put app.c <<-'C'
		#include <pthread.h>
		#include <semaphore.h>
		#include <stdio.h>
		#include <sys/mman.h>
		#include <unistd.h>

		int part(void);

		static void *thread(void *sem)
		{
			sem_post(sem);
			return NULL;
		}

		int main(void)
		{
			FILE *f = tmpfile();
			pthread_t t;
			sem_t sem;

			if (!f || sem_init(&sem, 1, 0) < 0 || pthread_create(&t, NULL, thread, &sem) != 0)
				return 1;
			sem_wait(&sem);
			pthread_join(t, NULL);
			printf("%d %d\n", part(), shm_open("/app", 66, 0600) >= 0);
			return part() != 42;
		}
	C
	give "$work/w"
	start_files
	allow '/w/b(/| )'
	works TOOLS 'is configured' -- cmake -S . -B b -DCMAKE_INSTALL_PREFIX=/tmp/to
	works TOOLS 'is built' -- cmake --build b -j 2
	works TOOLS 'its tests run' -- ctest --test-dir b --output-on-failure
	has '100% tests passed*' 'and pass'
	run run -- sh -c 'cmake --install b >/dev/null && /tmp/to/bin/app'
	expect_out '42 1' 'is installed, finds its library, and has semaphores and shared memory'
	if need TOOLS ninja 'ninja'; then
		run run -- sh -c 'cmake -S . -B /tmp/n -G Ninja >/dev/null && ninja -C /tmp/n >/dev/null && /tmp/n/app'
		expect_out '42 1' 'ninja builds it, too, below /tmp'
	fi
fi
finish

begin 'compilers'
put hello.c <<-'C'
	#include <stdio.h>

	int main(void)
	{
		puts("hello from C");
		return 0;
	}
C
give "$work/w"
start_files
for cc in gcc clang; do
	if need "${cc^^}" $cc "$cc"; then
		run run -- sh -c "$cc -g -O2 -Wall hello.c -o /tmp/hello && /tmp/hello &&
			echo 'int x;' | $cc -pipe -c -x c -o /dev/null - &&
			$cc -g -static hello.c -o /tmp/static && /tmp/static"
		expect_out 'hello from C
hello from C' "$cc compiles and links, static, too"
	fi
	if command -v $cc >/dev/null; then
		works "${cc^^}_ASAN" "$cc's address sanitizer" -- sh -c \
			"$cc -g -fsanitize=address,undefined hello.c -o /tmp/a && /tmp/a"
	fi
done
if need GXX g++ 'C++'; then
	run run -- sh -c 'printf "%s\n" "#include <iostream>" "#include <thread>" \
		"int main() { std::thread t([] { std::cout << 7 << std::endl; }); t.join(); }" |
		g++ -pthread -x c++ -o /tmp/a - && /tmp/a'
	expect_out 7 'g++, with a thread'
fi
if need GDB gdb 'a debugger'; then
	works GDB 'gdb runs a program to a breakpoint' -- sh -c 'gcc -g hello.c -o /tmp/hello &&
		gdb -nx -batch -ex "break main" -ex run -ex "print 6*7" -ex continue /tmp/hello 2>&1'
	has '$1 = 42' 'and looks into it'
fi
if need STRACE strace 'strace'; then
	works STRACE 'strace follows a program' -- sh -c 'strace -f -o /tmp/log sh -c "/bin/true; :" &&
		grep -c execve /tmp/log'
fi
finish

done_testing
