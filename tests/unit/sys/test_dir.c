/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: directories, entry by entry. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/sys/syscalls.h"
#include "tests/unit/test.h"

#define FILES 300 /* more than one getdents64(2) has room for */

static char base[64];

static int make(unsigned files)
{
	char name[16];

	snprintf(base, sizeof(base), "/tmp/lr-dir-XXXXXX");
	CHECK(mkdtemp(base));
	int dir = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; i < files; i++) {
		snprintf(name, sizeof(name), "%u", i);
		CHECK_INT(lr_close(openat(dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)),
			  LR_NOFD);
	}
	return dir;
}

TEST(each_entry_comes_once)
{
	unsigned seen[FILES] = {0}, n = 0;
	struct lr_dir d;
	int dir = make(FILES);

	lr_dir_begin(&d, dir);
	for (const struct lr_dirent *e; (e = lr_dir_next(&d)); n++) {
		if (e->name[0] == '.')
			continue;
		REQUIRE(atoi(e->name) < FILES);
		seen[atoi(e->name)]++;
	}
	CHECK_INT(errno, 0);
	CHECK_INT(n, FILES + 2);
	for (unsigned i = 0; i < FILES; i++) {
		CHECK_INT(seen[i], 1);
		char name[16];
		snprintf(name, sizeof(name), "%u", i);
		CHECK_INT(unlinkat(dir, name, 0), 0);
	}
	CHECK_INT(rmdir(base), 0);
	close(dir);
}

TEST(one_that_was_removed_has_none)
{
	struct lr_dir d;
	int dir = make(0);

	CHECK_INT(rmdir(base), 0);
	lr_dir_begin(&d, dir);
	errno = EIO;
	CHECK(!lr_dir_next(&d));
	CHECK_INT(errno, 0);
	close(dir);
}

TEST(what_cannot_be_read_is_an_error)
{
	struct lr_dir d;

	lr_dir_begin(&d, LR_NOFD);
	CHECK(!lr_dir_next(&d));
	CHECK_INT(errno, EBADF);
	CHECK(!lr_dir_next(&d));
	CHECK_INT(errno, EBADF);
}
