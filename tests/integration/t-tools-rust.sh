#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Rust in a jail: cargo from where it is installed builds, tests and installs a crate without a
# network.  Where rustup keeps root's, another user gets the same directories mounted in the home.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/t-tools-common.sh"
limit=120

toolchain=
mounts=()

# A home with the machine's toolchains: root's own, else its directories in the user's home.
use_toolchain() {
	if is_root && [ -d "$machine_home/.rustup/toolchains" ] && [ -d "$machine_home/.cargo/bin" ]; then
		toolchain=rustup
		if [ "$identity" = root ]; then
			export HOME=$machine_home CASEMATE_ROOT=$root PATH=$machine_path
			return
		fi
		mkdir -p "$HOME/.rustup" "$HOME/.cargo/bin"
		cp "$machine_home/.rustup/settings.toml" "$HOME/.rustup"
		mkdir "$HOME/.rustup/toolchains"
		give "$HOME/.rustup" "$HOME/.cargo"
		start_files
		mounts=("$HOME/.rustup/toolchains" "$HOME/.cargo/bin")
		mount --bind "$machine_home/.rustup/toolchains" "${mounts[0]}"
		mount --bind "$machine_home/.cargo/bin" "${mounts[1]}"
		PATH=$HOME/.cargo/bin:$PATH
	elif command -v cargo >/dev/null; then
		toolchain=installed
	fi
}

begin 'cargo'
put Cargo.toml <<-'TOML'
	[package]
	name = "cm-app"
	version = "0.1.0"
	edition = "2021"
TOML
put build.rs <<-'RS'
	fn main() {
	    println!("cargo:rustc-env=BUILT_BY={}", std::env::var("CARGO_PKG_NAME").unwrap());
	}
RS
put src/main.rs <<-'RS'
	use std::sync::mpsc;

	fn answer() -> u32 {
	    let (to, from) = mpsc::channel();
	    std::thread::spawn(move || to.send(42).unwrap());
	    from.recv().unwrap()
	}

	fn main() {
	    println!("{} from {}", answer(), env!("BUILT_BY"));
	}

	#[test]
	fn answers() {
	    assert_eq!(answer(), 42);
	}
RS
give "$work/w"
start_files
use_toolchain
if [ -n "$toolchain" ]; then
	allow '/w/(target|Cargo.lock)'
	works CARGO 'a crate is built' -- cargo build
	run run -- ./target/debug/cm-app
	expect_out '42 from cm-app' 'and runs'
	works CARGO 'its tests run' -- cargo test
	has 'test result: ok. 1 passed*' 'and pass'
	run run -- sh -c 'cargo install --quiet --debug --path . && cm-app && command -v cm-app'
	has '42 from cm-app' 'it is installed'
	has "$HOME/.local/bin/cm-app" 'to the private home, where PATH finds it'
	[ ! -e "$HOME/.local/bin/cm-app" ]
	ok 'and not to the real one'
	printf '\n[dependencies]\nno-such-crate-of-ours = "1"\n' >>Cargo.toml
	since=$(now_ms)
	run run -- cargo build
	ms=$(($(now_ms) - since))
	[ "$rc" != 0 ] && [ $ms -lt 10000 ]
	ok "what would be fetched is missing at once ($ms ms)"
	has '*offline*' 'and cargo says why'
	if [ "$toolchain" = rustup ]; then
		run run -- sh -c 'ls -A ~/.cargo ~/.rustup; touch ~/.rustup/toolchains/x ~/.cargo/bin/x'
		is "$(grep -cx 'bin\|toolchains\|settings.toml\|.*Read-only file system' \
			"$work/out" "$work/err" | cut -d : -f 2 | tr '\n' ' ')" '3 2 ' \
			'the toolchains are there and cannot be changed'
		is "$(grep -vx 'bin\|toolchains\|settings.toml\|/.*:\|' "$work/out")" '' \
			'and nothing that is beside them'
	fi
else
	skip CARGO 'no cargo' 'a crate is built'
fi
for m in "${mounts[@]}"; do
	umount "$m"
done
finish

done_testing
