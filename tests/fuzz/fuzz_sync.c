/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rendezvous, as a child that has been taken over would use it: any datagrams in any order. The
 * first byte chooses what the parent waits for; then come datagrams, each after its length (two
 * bytes, little-endian).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/init/sync.h"
#include "tests/fuzz/fuzz.h"

#define DATAGRAMS 8

static void say(int sock, const uint8_t *data, size_t size)
{
	for (int i = 0; i < DATAGRAMS && size >= 2; i++) {
		size_t len = data[0] | (size_t)data[1] << 8;

		data += 2;
		size -= 2;
		len = len < size ? len : size;
		/* An empty one would be the end of file. */
		if (len && send(sock, data, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return;
		data += len;
		size -= len;
	}
}

static void check(int r, const struct lr_err *err)
{
	char line[4 * sizeof(*err)];

	if (r >= 0)
		return;
	FUZZ_CHECK(err->code > 0);
	FUZZ_CHECK(memchr(err->room, 0, sizeof(err->room)) &&
		   memchr(err->step, 0, sizeof(err->step)));
	FUZZ_CHECK(memchr(err->msg, 0, sizeof(err->msg)) &&
		   memchr(err->path, 0, sizeof(err->path)));
	FUZZ_CHECK(memchr(err->hint, 0, sizeof(err->hint)));
	FUZZ_CHECK(strlen(lr_err_format(err, line, sizeof(line))) < sizeof(line));
	FUZZ_CHECK(!strchr(line, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lr_err err = {0};
	int32_t value = 0;
	int sv[2];

	if (size < 1 || lr_sync_pair(sv, &err) < 0)
		return 0;
	say(sv[1], data + 1, size - 1);
	lr_close(sv[1]);
	switch (data[0] % 4) {
	case 0:
		check(lr_sync_wait_exec(sv[0], getpid(), 0, NULL, &err), &err);
		break;
	case 1:
		check(lr_sync_tell(sv[0], LR_STEP_START, 0, &err), &err);
		break;
	default:
		for (int i = 0; i < DATAGRAMS; i++) {
			int r = lr_sync_wait(sv[0], data[0] / 4 % LR_STEPS, &value, &err);
			check(r, &err);
			if (r < 0)
				break;
		}
	}
	lr_close(sv[0]);
	return 0;
}
