# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of sessions of E2B share: a stand-in of the service that is strict, and blocks that use
# it.  After lib-terminal.sh.
# shellcheck disable=SC2034,SC2154
# SC2034: for those tests; SC2154: lib.sh knows where, and lib-terminal.sh has python

helpers=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/../helpers
cp "$binaries/casemate-remote" "$top/bin/" || bail "no casemate-remote in '$binaries'"
export limit=60
key='e2b_0123456789abcdef0123456789abcdef01234567'

# --- the service --------------------------------------------------------------------------------

server=
port=
# more of the stand-in's
service_options=()

stop_service() {
	[ -z "$server" ] || kill "$server" 2>/dev/null
	[ -z "$server" ] || wait "$server" 2>/dev/null
	server=
}
ends+=(stop_service)

start_service() {
	mkdir -p "$top/service"
	: >"$top/violations"
	: >"$top/said"
	$python "$helpers/e2b_server.py" --dir "$top/service" --violations "$top/violations" \
		--log "$top/log" --api-key "$key" --template base,other "${service_options[@]}" >"$top/said" 2>"$top/server.err" &
	server=$!
	until_true 20 grep -q '^PORT ' "$top/said" || {
		kill -0 "$server" 2>/dev/null && bail 'the stand-in does not start'
		wait "$server"
		[ $? = 77 ] && skip_all NAMESPACES 'the stand-in can make no sandbox'
		bail 'the stand-in has failed'
	}
	port=$(sed -n 's/^PORT //p' "$top/said")
}

# service METHOD WHAT [JSON]: of its test interface
service() {
	$python - "$port" "$@" <<-'END'
		import http.client, sys
		port, method, what = sys.argv[1:4]
		c = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
		c.request(method, "/__test/" + what, sys.argv[4] if len(sys.argv) > 4 else None)
		print(c.getresponse().read().decode())
	END
}

# look EXPRESSION: of its state `s`
look() { service GET state | $python -c "import json, sys; s = json.load(sys.stdin); print($1)"; }
n_sandboxes() { look 'len(s["sandboxes"])'; }
has_sandboxes() { [ "$(n_sandboxes)" = "$1" ]; }
fault() { service POST faults "$1" >/dev/null; }

# read EXPRESSION: of the JSON `j` in the last output
read_json() { $python -c "import json, sys; j = json.load(open(sys.argv[1])); print($1)" "$work/out"; }

# A clean environment, and then the service's.
no_service() {
	unset E2B_API_KEY E2B_API_URL E2B_SANDBOX_URL E2B_DOMAIN CASEMATE_PROVIDER
	unset FACTORY_SANDBOX_PROVIDER MASTRA_PROJECT_ID MASTRA_ENVIRONMENT_ID
	unset MASTRA_PLATFORM_ACCESS_TOKEN MASTRA_PLATFORM_SECRET_KEY
	unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy
}

use_service() {
	no_service
	export E2B_API_KEY=$key E2B_API_URL=http://127.0.0.1:$port E2B_SANDBOX_URL=http://127.0.0.1:$port
	export CASEMATE_PROVIDER=e2b
}

begin_with() { # NAME
	begin "$1"
	# where is remembered what was made of a session
	allow '(state|/var/lib)/casemate/remote(/e2b)? d 700'
	use_service
}

nothing_left() {
	until_true 10 has_sandboxes 0
	ok "${1:-the service has no sandbox left}" || look '[x["sandboxID"] for x in s["sandboxes"]]'
}

# What a service answers with is no business of who reads the output.
no_secrets() { # NAME
	! grep -qF -e "$key" -e "${key#e2b_}" -e 'X-Access-Token: ' "$work/out" "$work/err" &&
		! grep -qiE 'envdAccessToken|api-key: e2b' "$work/out" "$work/err"
	ok "$1"
}

temporary=(--no-workspace --network internet)
