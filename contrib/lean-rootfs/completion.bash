# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of lean-rootfs for bash; tests/house/check-rootfs holds it against --help.
_lean_rootfs() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options='' transports
	local common='--quiet --cache-dir --help'
	local making='--output --format --only-export --force --no-cache --read-only --terminal --cap-add --runtime'
	transports='docker-archive: oci: oci-archive: containers-storage: docker-daemon: docker:'
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W 'build from clean --help --version' -- "$word")
		return
	fi
	case $before in
	--format)
		mapfile -t COMPREPLY < <(compgen -W 'squashfs erofs ext4' -- "$word")
		return
		;;
	--cap-add)
		mapfile -t COMPREPLY < <(compgen -W 'docker' -- "$word")
		return
		;;
	-o | --output | -f | --file | --runtime | --cache-dir)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
		;;
	esac
	case ${COMP_WORDS[1]} in
	build) options="$common $making --file --base --tag" ;;
	from) options="$common $making" ;;
	clean) options=$common ;;
	esac
	case ${COMP_WORDS[1]}:$word in
	*:-*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word") ;;
	from:*)
		mapfile -t COMPREPLY < <(compgen -W "$transports" -- "$word")
		compopt -o nospace 2>/dev/null
		;;
	build:*) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
	esac
}
complete -F _lean_rootfs lean-rootfs
