/* SPDX-License-Identifier: Apache-2.0 */
#include "src/cli/log_sink.h"

#include <stdint.h>

#include "tests/unit/test.h"

static char buf[512];

TEST(text_entry)
{
	lr_cli_log_text(LR_ERROR, "exec: \"foo\": not\nfound", 1793232755, buf, sizeof(buf));
	CHECK_STR(buf, "time=\"2026-10-29T00:12:35Z\" level=error msg=\"exec: \\\"foo\\\": "
		       "not\\nfound\"\n");
	lr_cli_log_text(LR_WARN, "\x01", 0, buf, sizeof(buf));
	CHECK_STR(buf, "time=\"1970-01-01T00:00:00Z\" level=warning msg=\"\\x01\"\n");
}

TEST(json_entry)
{
	lr_cli_log_json(LR_ERROR, "a \"b\" \\ \x02 \t", 951782400, buf, sizeof(buf));
	CHECK_STR(buf, "{\"level\":\"error\",\"msg\":\"a \\\"b\\\" \\\\ \\u0002 "
		       "\\t\",\"time\":\"2000-02-29T00:00:00Z\"}\n");
	lr_cli_log_json(LR_DEBUG, "\xff\xc3\xa9\xed\xa0\x80", 4107542399, buf, sizeof(buf));
	CHECK_STR(buf, "{\"level\":\"debug\",\"msg\":"
		       "\"\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\",\"time\":"
		       "\"2100-02-28T23:59:59Z\"}\n");
}

/* A message of any length gives an entry that is whole, and valid JSON at its end. */
TEST(long_messages_are_cut)
{
	char msg[2048];

	memset(msg, '"', sizeof(msg));
	msg[sizeof(msg) - 1] = '\0';
	for (size_t size = 100; size <= sizeof(buf); size++) {
		size_t n = lr_cli_log_json(LR_ERROR, msg, 0, buf, size);
		CHECK(n < size && n == strlen(buf));
		CHECK_HAS(buf, "\\\"\",\"time\":\"1970-01-01T00:00:00Z\"}\n");
		n = lr_cli_log_text(LR_ERROR, msg, 0, buf, size);
		CHECK(n < size && buf[n - 1] == '\n' && buf[n - 2] == '"');
	}
}
