/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp: programs in files.
 *
 * A file is: the head below; the policy, padded to 8 bytes; the instructions; the listener's path
 * and metadata, each NUL-terminated. Native byte order: it never leaves the machine. Nothing in it
 * is trusted: lengths must add up, the sum must be right, the instructions must pass the check that
 * the kernel will make again.
 */
#define LR_ROOM "seccomp"
#include "src/seccomp/internal.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"

#define MAGIC    "LRSCMP\r\n"
#define VERSION  1u /* of this format */
#define TEXT_MAX 65536

struct head {
	char magic[8];
	uint32_t version;
	uint32_t flags;
	uint32_t notify;
	uint32_t n;
	uint32_t policy_len;
	uint32_t path_len;     /* with NUL; 0: none */
	uint32_t metadata_len; /* with NUL; 0: none */
	uint32_t zero;
	uint64_t sum; /* of everything, with 0 in this place */
};

static uint64_t fnv(const unsigned char *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

static size_t padded(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

static size_t text_len(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

void *lr_seccomp_pack(const struct lr_seccomp_prog *prog, const void *policy, size_t policy_len,
		      struct lr_arena *arena, size_t *len)
{
	struct head h = {.version = VERSION,
			 .flags = prog->flags,
			 .notify = prog->notify,
			 .n = prog->n,
			 .policy_len = (uint32_t)policy_len,
			 .path_len = (uint32_t)text_len(prog->listener_path),
			 .metadata_len = (uint32_t)text_len(prog->listener_metadata)};
	size_t code = sizeof(h) + padded(policy_len), text = code + prog->n * sizeof(*prog->v);
	unsigned char *out = lr_alloc(arena, text + h.path_len + h.metadata_len);

	if (!out)
		return NULL;
	memcpy(h.magic, MAGIC, sizeof(h.magic));
	if (policy_len)
		memcpy(out + sizeof(h), policy, policy_len);
	memcpy(out + code, prog->v, prog->n * sizeof(*prog->v));
	if (h.path_len)
		memcpy(out + text, prog->listener_path, h.path_len);
	if (h.metadata_len)
		memcpy(out + text + h.path_len, prog->listener_metadata, h.metadata_len);
	*len = text + h.path_len + h.metadata_len;
	memcpy(out, &h, sizeof(h));
	h.sum = fnv(out, *len);
	memcpy(out, &h, sizeof(h));
	return out;
}

/* A string of exactly len bytes with its NUL; NULL for none; false if it is no string. */
static bool take_text(const char *at, uint32_t len, const char **ret)
{
	*ret = len ? at : NULL;
	return len == 0 || strnlen(at, len) == len - 1;
}

int lr_seccomp_unpack(void *bytes, size_t len, const void *policy, size_t policy_len,
		      struct lr_seccomp_prog *ret)
{
	unsigned char *in = bytes;
	struct lr_seccomp_prog p = {0};
	struct head h;

	if (len < sizeof(h) || len > LR_SECCOMP_FILE_MAX)
		return -EBADMSG;
	memcpy(&h, in, sizeof(h));

	uint64_t sum = h.sum;
	h.sum = 0;
	memcpy(in, &h, sizeof(h));
	if (memcmp(h.magic, MAGIC, sizeof(h.magic)) != 0 || h.version != VERSION || h.zero ||
	    h.notify > 1 || h.n == 0 || h.n > BPF_MAXINSNS || h.policy_len != policy_len ||
	    h.path_len > TEXT_MAX || h.metadata_len > LR_SECCOMP_FILE_MAX)
		return -EBADMSG;
	size_t code = sizeof(h) + padded(policy_len), text = code + h.n * sizeof(*p.v);
	if (len != text + h.path_len + h.metadata_len || sum != fnv(in, len) ||
	    (policy_len && memcmp(in + sizeof(h), policy, policy_len) != 0))
		return -EBADMSG;
	p.v = (struct sock_filter *)(void *)(in + code);
	p.n = (unsigned short)h.n;
	p.flags = h.flags;
	p.notify = h.notify;
	if (!take_text((char *)in + text, h.path_len, &p.listener_path) ||
	    !take_text((char *)in + text + h.path_len, h.metadata_len, &p.listener_metadata) ||
	    !lr_seccomp_valid(p.v, p.n))
		return -EBADMSG;
	*ret = p;
	return 0;
}

/* What seccomp_check_filter() and bpf_check_classic() of the kernel accept. */
static bool valid_insn(const struct sock_filter *f, size_t at, size_t n)
{
	size_t left = n - at - 1;

	switch (f->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		return f->k % 4 == 0 && f->k < sizeof(struct seccomp_data);
	case BPF_LD | BPF_W | BPF_LEN:
	case BPF_LDX | BPF_W | BPF_LEN:
	case BPF_LD | BPF_IMM:
	case BPF_LDX | BPF_IMM:
	case BPF_MISC | BPF_TAX:
	case BPF_MISC | BPF_TXA:
	case BPF_RET | BPF_K:
	case BPF_RET | BPF_A:
	case BPF_ALU | BPF_NEG:
		return true;
	case BPF_LD | BPF_MEM:
	case BPF_LDX | BPF_MEM:
	case BPF_ST:
	case BPF_STX:
		return f->k < BPF_MEMWORDS;
	case BPF_ALU | BPF_DIV | BPF_K:
		return f->k != 0;
	case BPF_ALU | BPF_LSH | BPF_K:
	case BPF_ALU | BPF_RSH | BPF_K:
		return f->k < 32;
	case BPF_ALU | BPF_ADD | BPF_K:
	case BPF_ALU | BPF_ADD | BPF_X:
	case BPF_ALU | BPF_SUB | BPF_K:
	case BPF_ALU | BPF_SUB | BPF_X:
	case BPF_ALU | BPF_MUL | BPF_K:
	case BPF_ALU | BPF_MUL | BPF_X:
	case BPF_ALU | BPF_DIV | BPF_X:
	case BPF_ALU | BPF_AND | BPF_K:
	case BPF_ALU | BPF_AND | BPF_X:
	case BPF_ALU | BPF_OR | BPF_K:
	case BPF_ALU | BPF_OR | BPF_X:
	case BPF_ALU | BPF_XOR | BPF_K:
	case BPF_ALU | BPF_XOR | BPF_X:
	case BPF_ALU | BPF_LSH | BPF_X:
	case BPF_ALU | BPF_RSH | BPF_X:
		return true;
	case BPF_JMP | BPF_JA:
		return f->k < left;
	case BPF_JMP | BPF_JEQ | BPF_K:
	case BPF_JMP | BPF_JEQ | BPF_X:
	case BPF_JMP | BPF_JGT | BPF_K:
	case BPF_JMP | BPF_JGT | BPF_X:
	case BPF_JMP | BPF_JGE | BPF_K:
	case BPF_JMP | BPF_JGE | BPF_X:
	case BPF_JMP | BPF_JSET | BPF_K:
	case BPF_JMP | BPF_JSET | BPF_X:
		return f->jt < left && f->jf < left;
	default:
		return false;
	}
}

bool lr_seccomp_valid(const struct sock_filter *v, size_t n)
{
	if (n == 0 || n > BPF_MAXINSNS || BPF_CLASS(v[n - 1].code) != BPF_RET)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!valid_insn(&v[i], i, n))
			return false;
	return true;
}

int lr_seccomp_save(const struct lr_seccomp_prog *prog, int fd, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	size_t len;
	void *bytes = arena ? lr_seccomp_pack(prog, NULL, 0, arena, &len) : NULL;

	if (!bytes)
		return lr_fail(err, ENOMEM, "system call filter");
	ssize_t n = lr_write_full(fd, bytes, len);
	return n < 0 ? lr_fail(err, (int)-n, "cannot save the system call filter") : 0;
}

int lr_seccomp_restore(int fd, struct lr_arena *arena, struct lr_seccomp_prog *ret,
		       struct lr_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return lr_fail(err, errno, "saved system call filter");
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > (off_t)LR_SECCOMP_FILE_MAX)
		return lr_fail(err, EBADMSG, "the saved system call filter is damaged");
	size_t len = (size_t)st.st_size;
	void *bytes = lr_alloc(arena, len);
	if (!bytes)
		return lr_fail(err, ENOMEM, "saved system call filter");
	ssize_t n = lr_read_full(fd, bytes, len);
	if (n < 0)
		return lr_fail(err, (int)-n, "saved system call filter");
	if (lr_seccomp_unpack(bytes, (size_t)n, NULL, 0, ret) < 0)
		return lr_fail(err, EBADMSG, "the saved system call filter is damaged");
	return 0;
}
