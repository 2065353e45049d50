#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Nothing in the tree depends on the machine or the network that it was written on: no absolute
# path of a working machine, no host name of a package registry or a mirror.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# in_files WHY REGEX [FILES THAT MAY]
in_files() {
	lint_files '.' | { grep -vE "${3:-^\$}" || :; } | while IFS= read -r file; do
		grep -IHnE -- "$2" "$file" || :
	done | lint_report "$1"
}

in_files 'a path of somebody'"'"'s machine' \
	'(^|[^A-Za-z0-9_./-])(/w[o]rk/|/U[s]ers/|/tmp/bash[_])'
# The name sets are data that users ask for by name.
in_files 'a host name of a registry or mirror' \
	'registry[.]npmjs|pypi[.]org|pythonhosted[.]org|crates[.]io|proxy[.]golang|rubygems[.]org|repo[.]maven|docker[.]io|ghcr[.]io|quay[.]io|deb[.]debian|(security|ftp|archive)[.](debian|ubuntu)' \
	'^runtime/share/|^tests/.*/names[^/]*$'
exit "$lint_status"
