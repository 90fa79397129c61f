/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: what criu's images say of mounts, and of files that were deleted. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/criu/criu.h"
#include "tests/unit/test.h"

#define MAGIC  "\x19\x43\x56\x54"
#define MOUNTS MAGIC "\x28\x39\x56\x55"
#define TREE   MAGIC "\x30\x30\x27\x50"
#define IDS    MAGIC "\x30\x20\x43\x54"

/* type 17, id 300, device 8, parent 1, flags 3, root "/r", point "/p", source "s", options "o" */
#define MOUNT "\x08\x11\x10\xac\x02\x18\x08\x20\x01\x28\x03\x32\x02/r\x3a\x02/p\x42\x01s\x4a\x01o"
#define NAMED MOUNT "\x92\x01\x02/k"

static int decode(const char *bytes, size_t n, struct lr_criu_mount *one, size_t *count)
{
	static struct lr_arena *a;
	struct lr_criu_mount *v = NULL;
	struct lr_err err = {0};

	lr_arena_free(a);
	a = lr_arena_new();
	*count = 0;
	int r = lr_criu_decode_mounts((const uint8_t *)bytes, n, a, &v, count, &err);
	CHECK(r == 0 || (r == -EBADMSG && err.msg[0]));
	if (*count)
		*one = v[*count - 1];
	return r;
}
#define DECODE(bytes) decode(bytes, sizeof(bytes) - 1, &m, &n)

TEST(mounts_are_read)
{
	struct lr_criu_mount m;
	size_t n;

	CHECK_INT(DECODE(MOUNTS), 0);
	CHECK_INT(n, 0);
	CHECK_INT(DECODE(MOUNTS "\x1e\0\0\0" NAMED "\x19\0\0\0" MOUNT), 0);
	CHECK_INT(n, 2);
	CHECK(!m.key);
	CHECK_INT(DECODE(MOUNTS "\x1e\0\0\0" NAMED), 0);
	CHECK_INT(n, 1);
	CHECK_INT(m.type, 17);
	CHECK_INT(m.id, 300);
	CHECK_INT(m.device, 8);
	CHECK_INT(m.parent, 1);
	CHECK_INT(m.flags, 3);
	CHECK_STR(m.root, "/r");
	CHECK_STR(m.point, "/p");
	CHECK_STR(m.source, "s");
	CHECK_STR(m.options, "o");
	CHECK_STR(m.key, "/k");
	/* What need not be there is empty. */
	CHECK_INT(DECODE(MOUNTS "\x08\0\0\0\x32\x02/r\x3a\x02/p"), 0);
	CHECK_STR(m.source, "");
	CHECK_STR(m.options, "");
	CHECK(!m.fsname && !m.deleted && !m.plugin && !m.master && !m.peers);
	CHECK_INT(DECODE(MOUNTS "\x15\0\0\0\x32\x02/r\x3a\x02/"
				"p\x50\x05\x58\x06\x60\x01\x80\x01\x01\x72\x02ov"),
		  0);
	CHECK_INT(m.peers, 5);
	CHECK_INT(m.master, 6);
	CHECK_INT(m.plugin, 1);
	CHECK_INT(m.deleted, 1);
	CHECK_STR(m.fsname, "ov");
}

TEST(what_is_no_image_of_mounts_is_refused)
{
	struct lr_criu_mount m;
	size_t n;

	CHECK_INT(DECODE(""), -EBADMSG);
	CHECK_INT(DECODE(MAGIC), -EBADMSG);
	CHECK_INT(DECODE(TREE "\x19\0\0\0" MOUNT), -EBADMSG);
	CHECK_INT(DECODE(MOUNTS "\x19\0\0"), -EBADMSG);
	CHECK_INT(DECODE(MOUNTS "\x1a\0\0\0" MOUNT), -EBADMSG);
	CHECK_INT(DECODE(MOUNTS "\xff\xff\xff\xff" MOUNT), -EBADMSG);
	CHECK_INT(DECODE(MOUNTS "\x18\0\0\0" MOUNT), -EBADMSG);
	CHECK_INT(DECODE("\x18\x43\x56\x54\x28\x39\x56\x55"), -EBADMSG);
	/* A number as a text, a text as a number. */
	CHECK_INT(DECODE(MOUNTS "\x1c\0\0\0" MOUNT "\x2a\x01\x03"), -EBADMSG);
	CHECK_INT(DECODE(MOUNTS "\x1e\0\0\0" MOUNT "\x2d\x03\0\0\0"), -EBADMSG);
	CHECK_INT(DECODE(MOUNTS "\x1b\0\0\0" MOUNT "\x30\x03"), -EBADMSG);
	CHECK_INT(DECODE(MOUNTS "\x1c\0\0\0" MOUNT "\x6a\x01\x01"), -EBADMSG);
	/* One that nothing depends on may be of any. */
	CHECK_INT(DECODE(MOUNTS "\x1c\0\0\0" MOUNT "\x7a\x01\x01"), 0);
	/* Without a root, or a mount point. */
	CHECK_INT(DECODE(MOUNTS "\0\0\0\0"), -EBADMSG);
	CHECK_INT(DECODE(MOUNTS "\x04\0\0\0\x32\x02/r"), -EBADMSG);
	CHECK_INT(DECODE(MOUNTS "\x04\0\0\0\x3a\x02/p"), -EBADMSG);
	/* External, without a name of its own. */
	CHECK_INT(DECODE(MOUNTS "\x1b\0\0\0" MOUNT "\x68\x01"), -EBADMSG);
	CHECK_INT(DECODE(MOUNTS "\x1b\0\0\0" MOUNT "\x68\x00"), 0);
}

TEST(more_mounts_than_a_namespace_may_have_are_refused)
{
	static char bytes[8 + 100001 * 12] = MOUNTS;
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_criu_mount *v = NULL;
	struct lr_err err = {0};
	size_t n = 0;

	for (int i = 0; i < 100001; i++)
		memcpy(&bytes[8 + i * 12], "\x08\0\0\0\x32\x02/r\x3a\x02/p", 12);
	CHECK_INT(lr_criu_decode_mounts((uint8_t *)bytes, sizeof(bytes) - 12, a, &v, &n, &err), 0);
	CHECK_INT(n, 100000);
	n = 0;
	CHECK_INT(lr_criu_decode_mounts((uint8_t *)bytes, sizeof(bytes), a, &v, &n, &err), -E2BIG);
}

static void put(int dir, const char *name, const char *bytes, size_t n)
{
	LR_CLEANUP_FD int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	REQUIRE(fd >= 0 && lr_write_full(fd, bytes, n) == (ssize_t)n);
}
#define PUT(name, bytes) put(dir, name, bytes, sizeof(bytes) - 1)

TEST(the_first_process_has_one_of_the_namespaces)
{
	static const char *const files[] = {"pstree.img", "ids-5.img", "ids-6.img",
					    "mountpoints-7.img", "mountpoints-8.img"};
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	char path[] = "/tmp/lean-images.XXXXXX";
	struct lr_err err = {0};
	struct lr_criu_mount *v;
	size_t n;

	REQUIRE(mkdtemp(path));
	LR_CLEANUP_FD int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(lr_criu_read_mounts(dir, a, &v, &n, &err), -ENOENT);
	PUT("pstree.img", TREE "\x04\0\0\0\x08\x05\x10\0\x04\0\0\0\x08\x06\x10\x05");
	CHECK_INT(lr_criu_read_mounts(dir, a, &v, &n, &err), -ENOENT);
	CHECK(strstr(err.msg, "ids-5.img"));
	PUT("ids-5.img", IDS "\x02\0\0\0\x48\x07");
	CHECK_INT(lr_criu_read_mounts(dir, a, &v, &n, &err), -ENOENT);
	CHECK(strstr(err.msg, "mountpoints-7.img"));
	PUT("mountpoints-7.img", MOUNTS "\x19\0\0\0" MOUNT);
	PUT("mountpoints-8.img", MOUNTS "\x1e\0\0\0" NAMED);
	PUT("ids-6.img", IDS "\x02\0\0\0\x48\x08");
	CHECK_INT(lr_criu_read_mounts(dir, a, &v, &n, &err), 0);
	REQUIRE(n == 2);
	for (size_t i = 0; i < n; i++)
		CHECK(v[i].first == !v[i].key);
	/* Without an image of its own, a process has ended; what no process is in is of an older image. */
	unlinkat(dir, "ids-6.img", 0);
	CHECK_INT(lr_criu_read_mounts(dir, a, &v, &n, &err), 0);
	CHECK_INT(n, 1);
	unlinkat(dir, "mountpoints-8.img", 0);
	CHECK_INT(lr_criu_read_mounts(dir, a, &v, &n, &err), 0);
	PUT("ids-6.img", IDS "\x02\0\0\0\x48\x08");
	CHECK_INT(lr_criu_read_mounts(dir, a, &v, &n, &err), -ENOENT);
	/* Longer than what is read at first. */
	static char many[sizeof(MOUNTS) - 1 + 2000 * 29] = MOUNTS;
	for (int i = 0; i < 2000; i++)
		memcpy(&many[sizeof(MOUNTS) - 1 + i * 29], "\x19\0\0\0" MOUNT, 29);
	put(dir, "mountpoints-8.img", many, sizeof(many));
	CHECK_INT(lr_criu_read_mounts(dir, a, &v, &n, &err), 0);
	CHECK_INT(n, 2001);
	/* Numbers that are missing, or none. */
	PUT("ids-5.img", IDS "\x02\0\0\0\x40\x07");
	CHECK_INT(lr_criu_read_mounts(dir, a, &v, &n, &err), -EBADMSG);
	PUT("ids-5.img", TREE "\x02\0\0\0\x48\x07");
	CHECK_INT(lr_criu_read_mounts(dir, a, &v, &n, &err), -EBADMSG);
	for (size_t i = 0; i < LR_ARRAY_SIZE(files); i++)
		unlinkat(dir, files[i], 0);
	rmdir(path);
}

#define REMAPS MAGIC "\x54\x39\x13\x59"
#define FILES  MAGIC "\x38\x31\x30\x56"

/* File 5 is one, twice, and 6 is of /proc of a process that has ended. */
#define THREE                                                                                      \
	"\x06\0\0\0\x08\x05\x10\x01\x18\x01\x06\0\0\0\x08\x06\x10\x02\x18\x02\x04\0\0\0\x08\x05"   \
	"\x10\x01"
/* Files 4 ("/c", mount 7) and 5 ("/d/e", mount 167), and 5 that is none of them. */
#define TWO                                                                                        \
	"\x0e\0\0\0\x08\x01\x10\x04\x1a\x08\x08\x04\x32\x02/c\x38\x0e"                             \
	"\x11\0\0\0\x08\x01\x10\x05\x1a\x0b\x08\x05\x32\x04/d/e\x38\xce\x02"                       \
	"\x06\0\0\0\x08\x02\x10\x05\x22\x00"

static int remaps(const char *some, size_t n_some, const char *files, size_t n_files, size_t *n,
		  struct lr_criu_remap *one)
{
	static struct lr_arena *a;
	struct lr_criu_remap *v;
	struct lr_err err = {0};

	lr_arena_free(a);
	a = lr_arena_new();
	int r = lr_criu_decode_remaps((const uint8_t *)some, n_some, (const uint8_t *)files,
				      n_files, a, &v, n, &err);
	CHECK(r == 0 || (r == -EBADMSG && err.msg[0]));
	if (r == 0 && *n)
		*one = v[0];
	return r;
}
#define REMAPS_OF(some, files) remaps(some, sizeof(some) - 1, files, sizeof(files) - 1, &n, &one)

TEST(files_that_were_deleted_are_found)
{
	struct lr_criu_remap one;
	size_t n;

	CHECK_INT(REMAPS_OF(REMAPS THREE, FILES TWO), 0);
	REQUIRE(n == 1);
	CHECK_STR(one.path, "/d/e");
	CHECK_INT(one.mount, 167);
	CHECK_INT(REMAPS_OF(REMAPS, FILES TWO), 0);
	CHECK_INT(n, 0);
	/* No file of that number, or none with a path. */
	CHECK_INT(REMAPS_OF(REMAPS THREE, FILES), -EBADMSG);
	CHECK_INT(REMAPS_OF(REMAPS THREE, FILES "\x08\0\0\0\x08\x01\x10\x05\x1a\x02\x08\x05"),
		  -EBADMSG);
	CHECK_INT(REMAPS_OF(REMAPS THREE,
			    FILES "\x0b\0\0\0\x08\x01\x10\x05\x1a\x05\x08\x05\x32\x01x"),
		  -EBADMSG);
	/* Without a mount that is known. */
	CHECK_INT(REMAPS_OF(REMAPS THREE,
			    FILES "\x0c\0\0\0\x08\x01\x10\x05\x1a\x06\x08\x05\x32\x02/x"),
		  0);
	CHECK_INT(one.mount, -1);
	/* Other kinds of images, and of fields. */
	CHECK_INT(REMAPS_OF(FILES THREE, FILES TWO), -EBADMSG);
	CHECK_INT(REMAPS_OF(REMAPS THREE, REMAPS TWO), -EBADMSG);
	CHECK_INT(REMAPS_OF(REMAPS "\x03\0\0\0\x0a\x01\x05", FILES TWO), -EBADMSG);
	CHECK_INT(REMAPS_OF(REMAPS THREE, FILES "\x06\0\0\0\x08\x01\x10\x05\x18\x05"), -EBADMSG);
	CHECK_INT(
		REMAPS_OF(REMAPS THREE, FILES "\x0a\0\0\0\x08\x01\x10\x05\x1a\x04\x08\x05\x30\x01"),
		-EBADMSG);
}
