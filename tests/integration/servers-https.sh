# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Repositories by nginx and git-http-backend, over servers.sh, which sources this.
#
# At each of the URLs below, for a repository DIR/NAME:
#
#   /open/NAME       anybody
#   /private/NAME    any user name, and $https_token as the password; else 401
#   /forbidden/NAME  401, with any credentials 403
#   /moved/NAME      redirect to /open/NAME
#   /moved-private/NAME    the same to /private/NAME
#   /port/NAME, /port-private/NAME         to $elsewhere_url
#   /beside/NAME, /beside-private/NAME     there too, by the name that the request has
#   /host/NAME, /host-private/NAME         to the same port by another name, localhost
#   /plain/NAME, /plain-private/NAME       to $http_url
#   /secure/NAME     to $https_url
#   /loop/NAME       to itself
#   /post/NAME, /post-elsewhere/NAME, /post-plain/NAME
#                    info/refs is answered, after the credentials of /private; git-upload-pack is
#                    redirected (307)
#   anything else    404
#
#   https_url  elsewhere_url  with a certificate of $https_ca for 127.0.0.1 and localhost
#   http_url        without TLS
#   expired_url     the certificate is out of date
#   othername_url   it is for other.example.org
#   otherca_url     it is of an authority that nobody knows
#
# requests NAME (https, elsewhere, http, expired, othername, otherca) prints a line for each request
# to that one since forget_requests: STATUS METHOD URI [AUTHORIZATION]
#
# shellcheck disable=SC2016,SC2034,SC2154
# SC2016: what single quotes keep from this shell is for nginx or a shell there
# SC2034: what is set here is read by the tests
# SC2154: ports and URLs are set by name, top is set by lib.sh

server_https() { # DIR
	local try
	missing=$(missing_program nginx fcgiwrap openssl curl) && return 1
	new_server_dir
	https_dir=$server_dir
	https_token=token-$RANDOM$RANDOM
	https_certificates || return 1
	https_programs "$1" || return 1
	for ((try = 0; try < 10; try++)); do
		https_configuration
		# one process: nothing stays behind when it is killed
		serve https_ready "$https_dir/nginx.out" nginx -p "$https_dir/" \
			-e "$https_dir/error.log" -c "$https_dir/nginx.conf" && return 0
	done
	cat "$https_dir/nginx.out" "$https_dir/error.log" >&2
	return 1
}

# All of them: nginx opens what it can while it waits for a port that somebody else has.
https_ready() { # PID
	local port
	for port in "$https_port" "$elsewhere_port" "$http_port" "$expired_port" "$othername_port" \
		"$otherca_port"; do
		is_listening "$1" "$port" || return 1
	done
}

certificate() { # NAME CA NAMES [OPTION...]
	local name=$1 ca=$2 names=$3
	shift 3
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$name.key" \
		-out "$name.csr" -subj /CN=test -addext "subjectAltName=$names" &&
		openssl x509 -req -in "$name.csr" -CA "$ca.pem" -CAkey "$ca.key" -CAcreateserial \
			-copy_extensions copy -out "$name.pem" -days 2 "$@"
}

authority() { # NAME
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" \
		-out "$1.pem" -days 2 -subj "/CN=$1 of a test"
}

https_certificates() {
	local ours=DNS:localhost,IP:127.0.0.1
	https_ca=$https_dir/ca.pem
	(
		cd "$https_dir" && authority ca && authority otherca && certificate good ca $ours &&
			certificate expired ca $ours -days -1 &&
			certificate othername ca DNS:other.example.org &&
			certificate otherca-leaf otherca $ours
	) >"$https_dir/openssl.log" 2>&1 && return 0
	cat "$https_dir/openssl.log" >&2
	return 1
}

# Each handles one request at a time; four, so that one that takes long stands in nobody's way.
https_programs() { # DIR
	local i
	https_repositories=$1
	cat >"$https_dir/auth" <<-'EOF'
		#!/bin/sh
		answer() { printf 'Status: %s\r\n%s\r\n\r\n' "$1" 'WWW-Authenticate: Basic realm="private"'; exit; }
		case $HTTP_AUTHORIZATION in
		Basic\ *) ;;
		*) answer 401 ;;
		esac
		given=$(printf %s "${HTTP_AUTHORIZATION#Basic }" | base64 -d)
		[ "${given#*:}" = "$TOKEN" ] || answer 401
		answer 204
	EOF
	chmod 755 "$https_dir/auth"
	for i in 1 2 3 4; do
		serve "has_socket $https_dir/cgi$i" "$https_dir/cgi.log" \
			fcgiwrap -f -s "unix:$https_dir/cgi$i" || {
			cat "$https_dir/cgi.log" >&2
			return 1
		}
	done
}

# redirects of one listener; OF: the scheme, host and port that the request came to
https_redirects() {
	local of='$scheme://$http_host' name=localhost:'$server_port' query='$is_args$args'
	local prefix target
	while read -r prefix target; do
		printf '\tlocation ~ ^/%s(/.*)$ { return 302 %s$1%s; }\n' "$prefix" "$target" "$query"
	done <<-EOF
		moved          $of/open
		moved-private  $of/private
		port           $elsewhere_url/open
		port-private   $elsewhere_url/private
		beside         \$scheme://\$host:$elsewhere_port/open
		beside-private \$scheme://\$host:$elsewhere_port/private
		host           \$scheme://$name/open
		host-private   \$scheme://$name/private
		plain          $http_url/open
		plain-private  $http_url/private
		secure         $https_url/open
		loop           $of/loop
	EOF
	# 307 and not 302, after which a POST becomes a GET
	while read -r prefix target; do
		printf '\tlocation ~ ^/%s(/.*/git-upload-pack)$ { return 307 %s$1; }\n' "$prefix" "$target"
	done <<-EOF
		post            $of/private
		post-elsewhere  $elsewhere_url/private
		post-plain      $http_url/private
	EOF
}

https_listener() { # NAME PORT [CERTIFICATE]
	printf 'server {\n\tserver_name %s;\n\tlisten 127.0.0.1:%s%s;\n' "$1" "$2" "${3:+ ssl}"
	[ $# -lt 3 ] || printf '\tssl_certificate %s.pem;\n\tssl_certificate_key %s.key;\n' \
		"$https_dir/$3" "$https_dir/$3"
	https_redirects
	cat <<-'EOF'
			location ~ ^/open(/.*)$ { set $repo $1; include git.conf; }
			location ~ ^/(private|post[a-z-]*)(/.*)$ {
				set $repo $2;
				auth_request /.auth;
				include git.conf;
			}
			location /forbidden/ {
				if ($http_authorization) { return 403; }
				add_header WWW-Authenticate 'Basic realm="forbidden"' always;
				return 401;
			}
			location = /.auth { internal; include auth.conf; }
			location = /.settle { access_log off; return 204; }
			location / { return 404; }
		}
	EOF
}

https_urls() {
	local name
	for name in https elsewhere http expired othername otherca; do
		free_port
		declare -g "${name}_port=$free_port"
		declare -g "${name}_url=https://127.0.0.1:$free_port"
	done
	http_url=http://127.0.0.1:$http_port
}

# what nginx passes to a program, whatever the program
https_parameters() {
	cat <<-'EOF'
		fastcgi_pass cgi;
		fastcgi_param REQUEST_METHOD $request_method;
		fastcgi_param QUERY_STRING $query_string;
		fastcgi_param CONTENT_TYPE $content_type;
		fastcgi_param SERVER_PROTOCOL $server_protocol;
		fastcgi_param REMOTE_ADDR $remote_addr;
	EOF
}

https_configuration() {
	https_urls
	{
		https_parameters
		cat <<-EOF
			fastcgi_param SCRIPT_FILENAME $(git --exec-path)/git-http-backend;
			fastcgi_param GIT_PROJECT_ROOT $https_repositories;
			fastcgi_param GIT_CONFIG_GLOBAL $top/gitconfig;
			fastcgi_param GIT_HTTP_EXPORT_ALL 1;
			fastcgi_param GIT_PROTOCOL \$http_git_protocol;
			fastcgi_param CONTENT_LENGTH \$content_length;
			fastcgi_param PATH_INFO \$repo;
			fastcgi_buffering off;
		EOF
	} >"$https_dir/git.conf"
	{
		https_parameters
		cat <<-EOF
			fastcgi_param SCRIPT_FILENAME $https_dir/auth;
			fastcgi_param TOKEN $https_token;
			fastcgi_param CONTENT_LENGTH "";
			fastcgi_pass_request_body off;
		EOF
	} >"$https_dir/auth.conf"
	{
		is_root && echo 'user root;'
		https_globals
		https_listener https "$https_port" good
		https_listener http "$http_port"
		https_listener expired "$expired_port" expired
		https_listener othername "$othername_port" othername
		https_listener otherca "$otherca_port" otherca-leaf
		https_listener elsewhere "$elsewhere_port" good
		echo '}'
	} >"$https_dir/nginx.conf"
}

https_globals() {
	local i kind
	cat <<-EOF
		daemon off;
		master_process off;
		pid nginx.pid;
		error_log error.log;
		events { worker_connections 256; }
		http {
		log_format requests '\$server_name \$status \$request_method \$request_uri [\$http_authorization]';
		access_log access.log requests;
		lingering_close off;
		client_max_body_size 0;
		upstream cgi {
			least_conn;
	EOF
	for i in 1 2 3 4; do
		echo "	server unix:$https_dir/cgi$i max_fails=0;"
	done
	echo '}'
	for kind in client_body proxy fastcgi uwsgi scgi; do
		echo "${kind}_temp_path $kind;"
	done
}

# nginx writes of a request when it is over, which its client may know first; it does one thing
# after the other, so that after an answer to this it has written.
https_settle() { curl -q -s --noproxy '*' -o /dev/null "$http_url/.settle"; }

requests() { # NAME
	https_settle && sed -n "s/^$1 //p" "$https_dir/access.log"
}

forget_requests() { https_settle && : >"$https_dir/access.log"; }

# credentials NAME: user:password of the requests to that one, each once
credentials() {
	requests "$1" | sed -n 's/.*\[Basic \(.*\)\]$/\1/p' | sort -u | while read -r line; do
		printf '%s\n' "$(printf %s "$line" | base64 -d)"
	done
}
