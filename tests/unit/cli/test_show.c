/* SPDX-License-Identifier: Apache-2.0 */
/* Signal names, and the JSON of events. */
#include <errno.h>
#include <signal.h>

#include "src/base/arena.h"
#include "src/cli/events_json.h"
#include "src/cli/signal_name.h"
#include "tests/unit/test.h"

TEST(signals)
{
	CHECK_INT(lr_cli_signal("9"), 9);
	CHECK_INT(lr_cli_signal("KILL"), SIGKILL);
	CHECK_INT(lr_cli_signal("SIGTERM"), SIGTERM);
	CHECK_INT(lr_cli_signal("sigusr1"), SIGUSR1);
	CHECK_INT(lr_cli_signal("winch"), SIGWINCH);
	CHECK_INT(lr_cli_signal("IOT"), SIGABRT);
	CHECK_INT(lr_cli_signal("SIGIO"), SIGPOLL);
	CHECK_INT(lr_cli_signal("RTMIN"), 34);
	CHECK_INT(lr_cli_signal("SIGRTMIN+3"), 37);
	CHECK_INT(lr_cli_signal("SIGRTMAX-1"), 63);
	CHECK_INT(lr_cli_signal("0"), 0);
	CHECK_INT(lr_cli_signal("64"), 64);
}

TEST(signals_refused)
{
	CHECK_INT(lr_cli_signal("65"), -EINVAL);
	CHECK_INT(lr_cli_signal("-9"), -EINVAL);
	CHECK_INT(lr_cli_signal(""), -EINVAL);
	CHECK_INT(lr_cli_signal("SIG"), -EINVAL);
	CHECK_INT(lr_cli_signal("KILLER"), -EINVAL);
	CHECK_INT(lr_cli_signal("9 "), -EINVAL);
	CHECK_INT(lr_cli_signal("RTMIN+31"), -EINVAL);
	CHECK_INT(lr_cli_signal("RTMIN-1"), -EINVAL);
	CHECK_INT(lr_cli_signal("RTMINX"), -EINVAL);
}

TEST(empty_stats)
{
	const struct lr_stats none = {0};
	struct lr_arena *a = lr_arena_new();

	CHECK_STR(lr_cli_stats_json("x", &none, a),
		  "{\"type\":\"stats\",\"id\":\"x\",\"data\":{\"cpu\":{\"usage\":{\"total\":0,"
		  "\"kernel\":0,\"user\":0},\"throttling\":{\"periods\":0,\"throttledPeriods\":0,"
		  "\"throttledTime\":0}},\"memory\":{},\"pids\":{},\"blkio\":{},\"hugetlb\":{}}}");
	lr_arena_free(a);
}

TEST(full_stats)
{
	struct lr_stats_kv raw[] = {{"anon", 5}};
	struct lr_stats_blkio_entry io[] = {{.major = 8, .minor = 1, .value = 3, .op = "Read"}};
	struct lr_stats_hugetlb huge[] = {{.page_size = "2MB", .usage = 1}};
	struct lr_stats_rdma rdma[] = {{.device = "m0", .hca_handles = 2}};
	uint64_t cpus[] = {7, 8};
	struct lr_stats s = {
		.memory = {.present = true, .usage.limit = UINT64_MAX, .stat = {raw, 1}},
		.pids = {.present = true, .current = 2, .limit = 9},
		.blkio.io_service_bytes = {io, 1},
		.hugetlb = {huge, 1},
		.rdma_current = {rdma, 1},
		.cpu.percpu = {cpus, 2},
		.cpu.psi = {.present = true, .some = {.avg10 = 1.5, .total = 4}},
		.cpuset = {.present = true, .cpus = "0-2,5", .mems = "0"},
	};
	struct lr_arena *a = lr_arena_new();
	const char *text = lr_cli_stats_json("a\"b", &s, a);

	CHECK_HAS(text, "\"id\":\"a\\\"b\"");
	CHECK_HAS(text, "\"percpu\":[7,8]");
	CHECK_HAS(text,
		  "\"psi\":{\"some\":{\"avg10\":1.50,\"avg60\":0.00,\"avg300\":0.00,\"total\":4}");
	CHECK_HAS(text, "\"cpus\":[0,1,2,5]");
	CHECK_HAS(text, "\"usage\":{\"limit\":18446744073709551615,");
	CHECK_HAS(text, "\"raw\":{\"anon\":5}");
	CHECK_HAS(text, "\"pids\":{\"current\":2,\"limit\":9}");
	CHECK_HAS(text, "{\"major\":8,\"minor\":1,\"op\":\"Read\",\"value\":3}");
	CHECK_HAS(text, "\"hugetlb\":{\"2MB\":{\"usage\":1,");
	CHECK_HAS(text,
		  "\"rdma\":{\"current\":[{\"device\":\"m0\",\"hcaHandles\":2,\"hcaObjects\":0}]}");
	lr_arena_free(a);
}
