#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# python in a jail: environments, packages of the project's own, processes and what they share, and
# the machine's pyenv where root has one.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/t-tools-common.sh"
limit=120

# A package that is built by a backend of its own: nothing is fetched, and pip's own are not needed.
local_package() {
	put pkg/pyproject.toml <<-'TOML'
		[build-system]
		requires = []
		build-backend = "backend"
		backend-path = ["."]
		[project]
		name = "cmtool"
		version = "1.0"
	TOML
	put pkg/backend.py <<-'PY'
		import zipfile

		INFO = "cmtool-1.0.dist-info/"

		def build_wheel(directory, config_settings=None, metadata_directory=None):
		    name = "cmtool-1.0-py3-none-any.whl"
		    with zipfile.ZipFile(f"{directory}/{name}", "w") as z:
		        z.writestr("cmtool.py", "def main(): print('from', __file__)\n")
		        z.writestr(INFO + "METADATA", "Metadata-Version: 2.1\nName: cmtool\nVersion: 1.0\n")
		        z.writestr(INFO + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
		                   "Tag: py3-none-any\n")
		        z.writestr(INFO + "entry_points.txt", "[console_scripts]\ncmtool = cmtool:main\n")
		        z.writestr(INFO + "RECORD", "")
		    return name
	PY
	give pkg
}

begin 'venv'
if need TOOLS python3 'an environment'; then
	local_package
	start_files
	allow '/w/(v|pkg)(/| )'
	if works TOOLS 'is made' -- python3 -m venv v; then
		works TOOLS 'pip installs a local package into it' -- v/bin/pip install ./pkg
		run run -- v/bin/cmtool
		like "$(out)" "from $work/w/v/lib/python*/site-packages/cmtool.py" \
			'whose script finds its interpreter in another jail'
		run run -- sh -c '. v/bin/activate && python -c "import sys, cmtool; print(sys.prefix)"'
		expect_out "$work/w/v" 'and which can be activated'
		since=$(now_ms)
		run run -- v/bin/pip install no-such-package-of-ours
		ms=$(($(now_ms) - since))
		[ "$rc" = 1 ] && [ $ms -lt 15000 ]
		ok "what is not there fails at once ($ms ms)"
		has 'note: this session has no network; *' 'and is told why'
	fi
fi
finish

begin 'pip --user'
if need TOOLS python3 'into the private home'; then
	local_package
	start_files
	allow '/w/pkg/'
	works PIP 'a package is installed' -- sh -c '
		export PIP_BREAK_SYSTEM_PACKAGES=1
		python3 -m pip install --user --no-warn-script-location ./pkg &&
		"$HOME/.local/bin/cmtool" && { command -v cmtool || :; }' &&
		has "from $HOME/.local/lib/python*/site-packages/cmtool.py" 'where its user can write' &&
		has "$HOME/.local/bin/cmtool" 'and its script is found on PATH'
fi
finish

begin 'multiprocessing'
if need TOOLS python3 'processes'; then
	put processes.py <<-'PY'
		import multiprocessing as mp
		from multiprocessing import shared_memory
		import concurrent.futures, ctypes, os, socket, tempfile, threading

		def square(x):
		    return x * x

		def put(q, v, lock):
		    with lock:
		        v.value += 1
		    q.put(os.getpid())

		def write(name):
		    m = shared_memory.SharedMemory(name=name)
		    m.buf[0] = 7
		    m.close()

		if __name__ == "__main__":
		    for method in ("fork", "spawn", "forkserver"):
		        c = mp.get_context(method)
		        with c.Pool(2) as pool:
		            assert pool.map(square, range(5)) == [0, 1, 4, 9, 16]
		        q, v, lock = c.Queue(), c.Value(ctypes.c_int, 0), c.Lock()
		        p = [c.Process(target=put, args=(q, v, lock)) for _ in range(3)]
		        [x.start() for x in p]
		        pids = sorted(q.get() for _ in p)
		        [x.join() for x in p]
		        assert v.value == 3 and pids == sorted(x.pid for x in p)
		        print(method)
		    m = shared_memory.SharedMemory(create=True, size=4096)
		    p = mp.Process(target=write, args=(m.name,))
		    p.start()
		    p.join()
		    assert m.buf[0] == 7
		    m.close()
		    m.unlink()
		    with mp.Manager() as manager:
		        d = manager.dict(a=1)
		        assert d["a"] == 1
		    with concurrent.futures.ProcessPoolExecutor(2) as e:
		        assert list(e.map(square, [3])) == [9]
		    s = socket.create_server(("localhost", 0))
		    t = threading.Thread(target=lambda: s.accept()[0].sendall(b"x"))
		    t.start()
		    assert socket.create_connection(s.getsockname()).recv(1) == b"x"
		    t.join()
		    assert socket.getaddrinfo(socket.gethostname(), 80)
		    with tempfile.TemporaryFile() as f:
		        f.write(b"x")
		    print(os.cpu_count() >= len(os.sched_getaffinity(0)) > 0)
	PY
	give "$work/w"
	start_files
	run run -- python3 processes.py
	expect_out 'fork
spawn
forkserver
True' 'pools, queues, locks, shared memory, sockets'
	expect_status 0 'and an end without an error'
fi
finish

# What the machine's root has is root's: another user's layout is made up in t-tools-homes.sh.
begin 'pyenv'
if [ "$identity" = root ] && is_root && [ -d "$machine_home/.pyenv/versions" ]; then
	export HOME=$machine_home CASEMATE_ROOT=$root PATH=$machine_path
	local_package
	start_files
	allow '/w/pkg/'
	run run -- sh -c 'python3 -c "import sys; print(sys.prefix)"; pyenv versions --bare | head -n 1
		command -v python3; touch ~/.pyenv/versions/x'
	has "$machine_home/.pyenv/versions/*" 'the installed python runs'
	has "$machine_home/.pyenv/shims/python3" 'through its shim'
	has '*Read-only file system' 'and cannot be changed'
	run run -- sh -c 'ls -A ~/.pyenv'
	is "$(out | grep -vxE 'bin|libexec|plugins|shims|version|versions|completions')" '' \
		'nothing else of its directory is there'
	run run -- sh -c 'python3 -m pip install ./pkg && cmtool && command -v cmtool'
	has "$machine_home/.local/bin/cmtool" 'pip install goes to the private home'
	[ ! -e "$machine_home/.local/bin/cmtool" ]
	ok 'and not to the real one'
else
	skip PYENV 'root has none here' 'the installed python runs'
fi
finish

done_testing
