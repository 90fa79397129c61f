/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user: who the container's process is (config.md "process.user").
 *
 * Ids are numbers, always: names are the caller's business (the specification has no names on
 * Linux, and a static program has no NSS). The one file that is read is the container's
 * /etc/passwd, for HOME.
 */
#ifndef LR_USER_USER_H
#define LR_USER_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"

/* crun's annotation: the groups of whoever called the runtime stay (rootless with a group that
 * cannot be mapped). Any value but "0" and "false" asks for it. */
#define LR_USER_KEEP_GROUPS "run.oci.keep_original_groups"

struct lr_user_plan {
	uid_t uid;
	gid_t gid;
	gid_t *gids; /* supplementary */
	size_t n_gids;
	bool keep_groups;
	bool has_umask;
	mode_t umask;
};

/* Pure. annotations may be NULL. */
int lr_user_plan(const struct oci_user *user, const struct oci_map *annotations,
		 struct lr_arena *arena, struct lr_user_plan *ret,
		 struct lr_err *err) LR_MUST_CHECK;

/*
 * setgroups, setresgid, setresuid of the calling thread, and the umask. Where the user namespace
 * denies setgroups and no additional groups are asked for, the caller's stay, unmapped.
 */
int lr_user_apply(const struct lr_user_plan *plan, struct lr_err *err) LR_MUST_CHECK;

/*
 * Gives descriptors 0, 1, 2 to the user, so that it can reopen /dev/stdout. Call before
 * lr_user_apply. Nothing to do for uid 0 or for what already is the user's; /dev/null and the like
 * are left alone, and so is what may not be changed.
 */
int lr_user_own_stdio(const struct lr_user_plan *plan, struct lr_err *err) LR_MUST_CHECK;

/*
 * "UID[:GID]" of `exec --user`, decimal, nothing before, between or after (CVE-2026-30892: a lax
 * parser ran as another user than the one asked for). *gid is untouched without a GID. (uid_t)-1
 * is refused: to the kernel it means "unchanged".
 */
int lr_user_parse(const char *text, uint32_t *uid, uint32_t *gid, bool *has_gid,
		  struct lr_err *err) LR_MUST_CHECK;

/*
 * The home directory of `uid` in `dirfd`'s etc/passwd (AT_FDCWD after pivot: "/etc/passwd"), "/"
 * when the file or the user isn't there, as runc has it. Links are followed inside the root only
 * if dirfd is a root descriptor. 0 or -ENAMETOOLONG.
 */
int lr_user_home(int dirfd, uint32_t uid, char *home, size_t size) LR_MUST_CHECK;

/* The parser of that file, for the tests and the fuzzer: true when a line of the NUL-terminated
 * text has this uid and an absolute home directory that fits. */
bool lr_user_home_in(char *text, uint32_t uid, char *home, size_t size);

#endif
