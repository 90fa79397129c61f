/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of libocispec/validate.c. */
#include "libocispec/ocispec.h"
#include "libocispec/validate.h"

#include <errno.h>

#include "tests/unit/test.h"

static struct lr_err err;

static int decode(const char *text)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct oci_config *c;

	memset(&err, 0, sizeof(err));
	return oci_config_decode(text, strlen(text), a, &c, &err);
}

#define CONFIG(more)     "{\"ociVersion\":\"1.0.0\",\"root\":{\"path\":\"r\"}" more "}"
#define PROCESS(members) CONFIG(",\"process\":{" members "}")
#define REFUSES(json, at, part)                                                                    \
	do {                                                                                       \
		CHECK_INT(decode(json), -EINVAL);                                                  \
		CHECK_STR(err.path, at);                                                           \
		CHECK_HAS(err.msg, part);                                                          \
		CHECK_STR(err.room, "config.json");                                                \
	} while (0)

TEST(semver)
{
	static const char *const good[] = {
		"1.0.0",      "0.0.4",      "10.20.30",    "1.0.0-rc5",      "1.0.2-dev",
		"1.2.3-0a.b", "1.0.0+20.b", "1.0.0-a+001", "1.3.0-rc.1+x-y", "1.0.0--",
	};
	static const char *const bad[] = {
		"",         "1",          "1.0",    "1.0.0.0",   "v1.0.0",
		"01.0.0",   "1.00.0",     "1.0.0-", "1.0.0+",    "1.0.0-",
		"1.0.0-01", "1.0.0-a..b", "1.0.0 ", " 1.0.0",    "1.0.0-\xc3\xbc",
		"-1.0.0",   "1..0",       "1.0.",   "1.0.0+a+b", "a.b.c",
	};
	unsigned major;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK(oci_is_semver(good[i], &major));
		CHECK_INT(major, atoi(good[i]));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (oci_is_semver(bad[i], &major))
			printf("# took %s\n", bad[i]);
		CHECK(!oci_is_semver(bad[i], &major));
	}
	CHECK(oci_is_semver("4294967297.0.0", &major) && major != 1);
	CHECK(oci_is_semver("99999999999999999999.0.0", &major) && major != 1);
}

TEST(versions)
{
	CHECK_INT(decode(CONFIG("")), 0);
	REFUSES("{}", "", "\"ociVersion\" is missing");
	REFUSES("{\"ociVersion\":null}", "", "\"ociVersion\" is missing");
	REFUSES("{\"ociVersion\":\"\"}", "ociVersion", "is not a version");
	REFUSES("{\"ociVersion\":\"1.0\"}", "ociVersion", "\"1.0\" is not a version");
	REFUSES("{\"ociVersion\":\"2.0.0\"}", "ociVersion", "version 2.0.0");
	REFUSES("{\"ociVersion\":\"0.9.0\"}", "ociVersion", "version 0.9.0");
	REFUSES("{\"ociVersion\":1}", "ociVersion", "expected a string");
}

TEST(root)
{
	REFUSES("{\"ociVersion\":\"1.0.0\"}", "", "\"root\" is missing");
	REFUSES("{\"ociVersion\":\"1.0.0\",\"root\":{}}", "root", "\"path\" is missing");
	REFUSES("{\"ociVersion\":\"1.0.0\",\"root\":{\"path\":\"\"}}", "root.path", "empty");
}

TEST(process)
{
	CHECK_INT(decode(PROCESS("\"cwd\":\"/\",\"args\":[\"a\"]")), 0);
	REFUSES(PROCESS("\"args\":[\"a\"]"), "process", "\"cwd\" is missing");
	REFUSES(PROCESS("\"cwd\":\"\",\"args\":[\"a\"]"), "process.cwd", "absolute");
	REFUSES(PROCESS("\"cwd\":\"a/b\",\"args\":[\"a\"]"), "process.cwd", "\"a/b\" must be");
	REFUSES(PROCESS("\"cwd\":\"/\""), "process.args", "at least");
	REFUSES(PROCESS("\"cwd\":\"/\",\"args\":[]"), "process.args", "at least");
	REFUSES(PROCESS("\"cwd\":\"/\",\"args\":[\"a\"],\"rlimits\":[{\"type\":\"x\",\"hard\":1}]"),
		"process.rlimits[0]", "\"soft\" is missing");
}

TEST(mounts)
{
	REFUSES(CONFIG(",\"mounts\":[{\"type\":\"proc\"}]"), "mounts[0]", "\"destination\"");
	REFUSES(CONFIG(",\"mounts\":[{\"destination\":\"/a\"},{\"destination\":\"\"}]"),
		"mounts[1].destination", "empty");
	/* As runc does; src/mount warns. */
	CHECK_INT(decode(CONFIG(",\"mounts\":[{\"destination\":\"dev/x\"}]")), 0);
}

TEST(hooks)
{
	static const char *const names[] = {"prestart",       "createRuntime", "createContainer",
					    "startContainer", "poststart",     "poststop"};
	char text[256], path[64];

	for (size_t i = 0; i < 6; i++) {
#define HOOK(members)                                                                              \
	snprintf(text, sizeof(text),                                                               \
		 CONFIG(",\"hooks\":{\"%s\":[{\"path\":\"/ok\",\"timeout\":1},{%s}]}"), names[i],  \
		 members)
		HOOK("\"path\":\"rel\"");
		snprintf(path, sizeof(path), "hooks.%s[1].path", names[i]);
		REFUSES(text, path, "absolute");
		HOOK("\"path\":\"/h\",\"timeout\":0");
		snprintf(path, sizeof(path), "hooks.%s[1].timeout", names[i]);
		REFUSES(text, path, "above 0");
		HOOK("\"path\":\"/h\",\"timeout\":-5");
		REFUSES(text, path, "-5 is not");
		HOOK("\"args\":[\"x\"]");
		snprintf(path, sizeof(path), "hooks.%s[1]", names[i]);
		REFUSES(text, path, "\"path\" is missing");
		HOOK("\"path\":\"/h\"");
		CHECK_INT(decode(text), 0);
	}
}

TEST(the_rest)
{
	REFUSES(CONFIG(",\"annotations\":{\"a\":\"\",\"\":\"b\"}"), "annotations", "empty");
	REFUSES(CONFIG(",\"linux\":{\"seccomp\":{\"defaultAction\":\"A\",\"syscalls\":["
		       "{\"names\":[\"a\"],\"action\":\"A\"},{\"names\":[],\"action\":\"A\"}]}}"),
		"linux.seccomp.syscalls[1].names", "at least one");
	REFUSES(CONFIG(",\"linux\":{\"seccomp\":{}}"), "linux.seccomp", "\"defaultAction\"");
	REFUSES(CONFIG(",\"linux\":{\"namespaces\":[{}]}"), "linux.namespaces[0]", "\"type\"");
	REFUSES(CONFIG(",\"linux\":{\"uidMappings\":[{\"hostID\":1,\"size\":1}]}"),
		"linux.uidMappings[0]", "\"containerID\"");
	REFUSES(CONFIG(",\"linux\":{\"resources\":{\"unified\":{\"memory.max\":5}}}"),
		"linux.resources.unified[\"memory.max\"]", "expected a string");
}
