#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Java in a jail: javac, java and maven, and a heap sized by the session's limit.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/t-tools-common.sh"
limit=120

begin 'javac and java'
if need JAVAC javac 'a program'; then
	put App.java <<-'JAVA'
		import java.net.*;
		import java.nio.file.*;
		import java.util.concurrent.*;

		public class App {
			public static void main(String[] args) throws Exception {
				ExecutorService pool = Executors.newFixedThreadPool(2);
				int sum = pool.submit(() -> 40).get() + pool.submit(() -> 2).get();
				pool.shutdown();
				ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
				Socket client = new Socket(server.getInetAddress(), server.getLocalPort());
				server.accept().getOutputStream().write(1);
				sum += client.getInputStream().read() - 1;
				Files.delete(Files.createTempFile("app", null));
				Process p = new ProcessBuilder("echo", "child").inheritIO().start();
				p.waitFor();
				System.out.println(sum + " " + System.getProperty("user.home") + " "
					+ InetAddress.getLocalHost().getHostName() + " "
					+ java.security.KeyStore.getInstance("JKS").getType());
			}
		}
	JAVA
	give "$work/w"
	start_files
	allow '/w/App.*class'
	works JAVAC 'is compiled' -- javac App.java
	run run -- java -cp . App
	expect_out "child
42 $HOME casemate JKS" 'and runs, with threads, sockets, children'
	run run -- java App.java
	expect_status 0 'from its source, too'
fi
finish

begin 'limits'
if need JAVA java 'the heap'; then
	if has_groups; then
		run run --memory 512M -- sh -c 'java -XX:+PrintFlagsFinal -version 2>/dev/null |
			awk "\$2 == \"MaxHeapSize\" { print \$4 / 1024 / 1024 }"'
		[ "$(out)" -gt 64 ] && [ "$(out)" -le 256 ]
		ok "is sized by the memory limit ($(out) MiB of 512)"
	else
		skip CGROUP 'no limits for this user here' 'is sized by the memory limit'
	fi
fi
finish

begin 'mvn'
if need MAVEN mvn 'offline'; then
	put pom.xml <<-'XML'
		<project xmlns="http://maven.apache.org/POM/4.0.0">
		  <modelVersion>4.0.0</modelVersion>
		  <groupId>org.example</groupId>
		  <artifactId>app</artifactId>
		  <version>1</version>
		  <packaging>pom</packaging>
		</project>
	XML
	give "$work/w"
	start_files
	works MAVEN 'reads a project' -- mvn -B -o validate
	has '*BUILD SUCCESS*' 'and is done with it'
fi
finish

done_testing
