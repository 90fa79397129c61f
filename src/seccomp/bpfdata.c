/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp: a ready-made filter, base64 in an annotation (crun's run.oci.seccomp_bpf_data). It
 * replaces linux.seccomp as a whole; who may set annotations may set this, so `features` lists it
 * as unsafe.
 */
#define LR_ROOM "seccomp"
#include "src/seccomp/internal.h"

#include <errno.h>
#include <string.h>

static int value_of(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Strict: full groups of four, padding at the end only. Bytes, or -1. */
static ssize_t decode(const char *in, size_t len, unsigned char *out)
{
	size_t n = 0;

	if (len == 0 || len % 4)
		return -1;
	for (size_t i = 0; i < len; i += 4) {
		bool last = i + 4 == len;
		int pad = last ? (in[i + 3] == '=') + (in[i + 2] == '=' && in[i + 3] == '=') : 0;
		uint32_t v = 0;

		for (size_t k = 0; k < 4; k++) {
			int d = k >= (size_t)(4 - pad) ? 0 : value_of(in[i + k]);
			if (d < 0)
				return -1;
			v = v << 6 | (uint32_t)d;
		}
		for (int k = 0; k < 3 - pad; k++)
			out[n++] = (unsigned char)(v >> (16 - 8 * k));
	}
	return (ssize_t)n;
}

int lr_seccomp_from_bpf_data(const char *base64, struct lr_arena *arena,
			     struct lr_seccomp_prog *ret, struct lr_err *err)
{
	size_t len = strlen(base64);
	struct sock_filter *v =
		len > BPF_MAXINSNS * sizeof(*v) * 2 ? NULL : lr_alloc(arena, len / 4 * 3 + 8);
	ssize_t n = v ? decode(base64, len, (unsigned char *)v) : -1;

	if (n < 0 || (size_t)n % sizeof(*v) || !lr_seccomp_valid(v, (size_t)n / sizeof(*v))) {
		lr_refuse(err, EINVAL, "not a base64 of a seccomp program");
		return lr_err_at(err, "annotations[\"%s\"]", LR_SECCOMP_BPF_DATA);
	}
	*ret = (struct lr_seccomp_prog){.v = v, .n = (unsigned short)((size_t)n / sizeof(*v))};
	return 0;
}
