/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that starts a container by the library and then does nothing: host BUNDLE ROOT ID
 * [PROFILE]. Says "ready" when it runs. With PROTECT in its environment it is protected, and ends
 * as the container does; executed by a container as `#!/proc/self/exe` it tells whether its own
 * file could be written by that way. Functions and a library that the archive has, too: nothing may
 * clash.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <lean/lean.h>

int lr_lifecycle_delete(void);
int seccomp_init(void);
int yajl_parse(void);

int lr_lifecycle_delete(void)
{
	return 1;
}

int seccomp_init(void)
{
	return 1;
}

int yajl_parse(void)
{
	return 1;
}

int main(int argc, char **argv)
{
	struct lean_start_options s = {.size = sizeof(s),
				       .id = argv[3],
				       .fds = {LEAN_FD_NULL, LEAN_FD_NULL, LEAN_FD_NULL}};
	struct lean_options o = {.size = sizeof(o),
				 .bundle = argv[1],
				 .root = argv[2],
				 .profile = argc > 4 ? argv[4] : NULL};
	struct lean_container *c;
	struct lean_template *t;
	struct lean_error e;
	struct statvfs fs;
	int status = 1;

	if (strcmp(argv[1], "/evil") == 0)
		return statvfs("/proc/self/exe", &fs) == 0 && fs.f_flag & ST_RDONLY ? 42 : 43;
	if (getenv("PROTECT") && lean_protect(argv, &e) < 0)
		errx(1, "%s", e.message);
	if (lean_open(&o, &t, &e) < 0 || lean_start(t, &s, &c, &e) < 0)
		errx(1, "%s", e.message);
	puts("ready");
	fflush(stdout);
	if (getenv("PROTECT"))
		return lean_wait(c, -1, &status, &e) < 0 || lean_delete(c, 0, &e) < 0 ? 1 : status;
	for (;;)
		pause();
	return lr_lifecycle_delete() + seccomp_init() + yajl_parse();
}
