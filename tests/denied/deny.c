/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deny ERROR CALL[,CALL...] PROGRAM [ARG...]: executes PROGRAM under a filter that answers these
 * system calls with ERROR (ENOSYS, EPERM), as an older kernel or a sandbox would. The filter stays
 * with everything that PROGRAM starts, containers included. CALL may be one of `flags` below, too:
 * open_tree with a flag that older kernels don't know.
 */
#include <errno.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name, *call;
	unsigned arg;
	uint64_t flag;
} flags[] = {
	{"open_tree_namespace", "open_tree", 2, 2 /* OPEN_TREE_NAMESPACE */},
};

static int deny(scmp_filter_ctx filter, int error, const char *name)
{
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strcmp(name, flags[i].name) == 0)
			return seccomp_rule_add(filter, SCMP_ACT_ERRNO(error),
						seccomp_syscall_resolve_name(flags[i].call), 1,
						SCMP_CMP(flags[i].arg, SCMP_CMP_MASKED_EQ,
							 flags[i].flag, flags[i].flag));
	int number = seccomp_syscall_resolve_name(name);
	return number < 0 ? -EINVAL : seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), number, 0);
}

static int usage(const char *why)
{
	fprintf(stderr, "deny: %s\nusage: deny ENOSYS|EPERM CALL[,CALL...] PROGRAM [ARG...]\n",
		why);
	return 125;
}

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	if (argc < 4)
		return usage("too few words");
	int error = strcmp(argv[1], "ENOSYS") == 0  ? ENOSYS
		    : strcmp(argv[1], "EPERM") == 0 ? EPERM
						    : 0;
	if (!error)
		return usage("unknown error");
	/* Set-user-id programs (newuidmap) have to stay what they are, where the kernel lets us. */
	if (!filter || seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, geteuid() != 0) < 0)
		return usage("no filter");
	for (char *save = NULL, *name = strtok_r(argv[2], ",", &save); name;
	     name = strtok_r(NULL, ",", &save)) {
		int r = deny(filter, error, name);
		if (r < 0)
			return usage(r == -EINVAL ? name : strerror(-r));
	}
	int r = seccomp_load(filter);
	if (r < 0)
		return usage(strerror(-r));
	execv(argv[3], argv + 3);
	perror(argv[3]);
	return 127;
}
