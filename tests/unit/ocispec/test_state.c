/* SPDX-License-Identifier: Apache-2.0 */
/* State: the bytes that hooks, seccomp agents and the callers of `state` read. */
#include "libocispec/ocispec.h"

#include <errno.h>

#include "tests/unit/test.h"

static struct oci_pair pairs[] = {{"org.x", "1 < 2"}, {"b", ""}};

static struct oci_state sample(void)
{
	return (struct oci_state){.oci_version = "1.3.0",
				  .id = "c1",
				  .status = "created",
				  .pid = 4422,
				  .bundle = "/bundles/c1",
				  .annotations = {pairs, 2}};
}

TEST(for_hooks)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct oci_state s = sample();
	size_t len;

	const char *text = oci_state_encode(&s, false, a, &len);
	CHECK_STR(text,
		  "{\"ociVersion\":\"1.3.0\",\"id\":\"c1\",\"status\":\"created\",\"pid\":4422,"
		  "\"bundle\":\"/bundles/c1\",\"annotations\":{\"org.x\":\"1 < 2\",\"b\":\"\"}}");
	CHECK_INT(len, strlen(text));
	s.pid = 0;
	s.status = "stopped";
	s.annotations.n = 0;
	CHECK_STR(oci_state_encode(&s, false, a, NULL),
		  "{\"ociVersion\":\"1.3.0\",\"id\":\"c1\",\"status\":\"stopped\","
		  "\"bundle\":\"/bundles/c1\"}");
}

TEST(for_callers)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct oci_state s = sample();

	s.rootfs = "/bundles/c1/rootfs";
	s.created = "2026-01-02T03:04:05.123456789Z";
	s.owner = "";
	CHECK_STR(oci_state_encode(&s, true, a, NULL),
		  "{\n"
		  "  \"ociVersion\": \"1.3.0\",\n"
		  "  \"id\": \"c1\",\n"
		  "  \"pid\": 4422,\n"
		  "  \"status\": \"created\",\n"
		  "  \"bundle\": \"/bundles/c1\",\n"
		  "  \"rootfs\": \"/bundles/c1/rootfs\",\n"
		  "  \"created\": \"2026-01-02T03:04:05.123456789Z\",\n"
		  "  \"annotations\": {\n"
		  "    \"org.x\": \"1 < 2\",\n"
		  "    \"b\": \"\"\n"
		  "  },\n"
		  "  \"owner\": \"\"\n"
		  "}");
	s.pid = 0;
	s.status = "stopped";
	s.annotations.n = 0;
	s.owner = NULL;
	CHECK_STR(oci_state_encode(&s, false, a, NULL),
		  "{\"ociVersion\":\"1.3.0\",\"id\":\"c1\",\"pid\":0,\"status\":\"stopped\","
		  "\"bundle\":\"/bundles/c1\",\"rootfs\":\"/bundles/c1/rootfs\","
		  "\"created\":\"2026-01-02T03:04:05.123456789Z\"}");
}

TEST(for_seccomp_agents)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const char *fds[] = {"seccompFd", NULL};
	struct oci_container_process_state s = {.oci_version = "1.3.0",
						.fds = {fds, 1},
						.pid = 7,
						.metadata = "k=v",
						.state = sample()};

	s.state.annotations.n = 0;
	s.state.rootfs = "/never/shown";
	CHECK_STR(
		oci_container_process_state_encode(&s, a, NULL),
		"{\"ociVersion\":\"1.3.0\",\"fds\":[\"seccompFd\"],\"pid\":7,\"metadata\":\"k=v\","
		"\"state\":{\"ociVersion\":\"1.3.0\",\"id\":\"c1\",\"status\":\"created\","
		"\"pid\":4422,\"bundle\":\"/bundles/c1\"}}");
	s.metadata = NULL;
	s.fds.n = 0;
	CHECK_HAS(oci_container_process_state_encode(&s, a, NULL),
		  "{\"ociVersion\":\"1.3.0\",\"fds\":[],\"pid\":7,\"state\":");
}

TEST(round_trip)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct oci_state s = sample();
	const struct oci_state *back;
	struct lr_err err = {0};
	size_t len;

	s.rootfs = "/r";
	s.owner = "root";
	const char *text = oci_state_encode(&s, true, a, &len);
	REQUIRE(oci_state_decode(text, len, a, &back, &err) == 0);
	CHECK_INT(back->pid, 4422);
	CHECK_STR(back->owner, "root");
	CHECK(back->created == NULL);
	CHECK_STR(back->annotations.v[0].value, "1 < 2");
	CHECK_STR(oci_state_encode(back, true, a, NULL), text);
	/* What hooks get is a state, too. */
	text = "{\"ociVersion\":\"1.0.2\",\"id\":\"x\",\"status\":\"creating\",\"bundle\":\"/b\"}";
	REQUIRE(oci_state_decode(text, strlen(text), a, &back, &err) == 0);
	CHECK_INT(back->pid, 0);
	CHECK_STR(oci_state_encode(back, false, a, NULL), text);
	text = "{\"ociVersion\":\"1.0.2\",\"id\":\"x\",\"bundle\":\"/b\"}";
	CHECK_INT(oci_state_decode(text, strlen(text), a, &back, &err), -EINVAL);
	CHECK_HAS(err.msg, "\"status\" is missing");
}
