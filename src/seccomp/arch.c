/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: architectures, and numbers of system calls. */
#include "src/seccomp/internal.h"

#include <endian.h>
#include <seccomp.h> /* its names of architectures; the library is not linked */
#include <stdlib.h>
#include <string.h>

#include "src/seccomp/numbers.h"

/* Values follow <linux/audit.h>: bit 31 is "64 bit", bit 30 "little endian". */
#define AUDIT_64      0x80000000u
#define AUDIT_LE      0x40000000u

#define ARM_PRIVATE   0x0f0000 /* __ARM_NR_BASE */

#define MIPS_O32_BASE 4000
#define MIPS_N64_BASE 5000
#define MIPS_N32_BASE 6000

static const struct lr_name archs[] = {
	{"SCMP_ARCH_AARCH64", SCMP_ARCH_AARCH64},
	{"SCMP_ARCH_ARM", SCMP_ARCH_ARM},
#ifdef SCMP_ARCH_LOONGARCH64
	{"SCMP_ARCH_LOONGARCH64", SCMP_ARCH_LOONGARCH64},
#endif
#ifdef SCMP_ARCH_M68K
	{"SCMP_ARCH_M68K", SCMP_ARCH_M68K},
#endif
	{"SCMP_ARCH_MIPS", SCMP_ARCH_MIPS},
	{"SCMP_ARCH_MIPS64", SCMP_ARCH_MIPS64},
	{"SCMP_ARCH_MIPS64N32", SCMP_ARCH_MIPS64N32},
	{"SCMP_ARCH_MIPSEL", SCMP_ARCH_MIPSEL},
	{"SCMP_ARCH_MIPSEL64", SCMP_ARCH_MIPSEL64},
	{"SCMP_ARCH_MIPSEL64N32", SCMP_ARCH_MIPSEL64N32},
	{"SCMP_ARCH_PARISC", SCMP_ARCH_PARISC},
	{"SCMP_ARCH_PARISC64", SCMP_ARCH_PARISC64},
	{"SCMP_ARCH_PPC", SCMP_ARCH_PPC},
	{"SCMP_ARCH_PPC64", SCMP_ARCH_PPC64},
	{"SCMP_ARCH_PPC64LE", SCMP_ARCH_PPC64LE},
	{"SCMP_ARCH_RISCV64", SCMP_ARCH_RISCV64},
	{"SCMP_ARCH_S390", SCMP_ARCH_S390},
	{"SCMP_ARCH_S390X", SCMP_ARCH_S390X},
#ifdef SCMP_ARCH_SH
	{"SCMP_ARCH_SH", SCMP_ARCH_SH},
	{"SCMP_ARCH_SHEB", SCMP_ARCH_SHEB},
#endif
	{"SCMP_ARCH_X32", SCMP_ARCH_X32},
	{"SCMP_ARCH_X86", SCMP_ARCH_X86},
	{"SCMP_ARCH_X86_64", SCMP_ARCH_X86_64},
};

const char *const lr_seccomp_archs[] = {
	"SCMP_ARCH_AARCH64",     "SCMP_ARCH_ARM",
#ifdef SCMP_ARCH_LOONGARCH64
	"SCMP_ARCH_LOONGARCH64",
#endif
#ifdef SCMP_ARCH_M68K
	"SCMP_ARCH_M68K",
#endif
	"SCMP_ARCH_MIPS",        "SCMP_ARCH_MIPS64",
	"SCMP_ARCH_MIPS64N32",   "SCMP_ARCH_MIPSEL",
	"SCMP_ARCH_MIPSEL64",    "SCMP_ARCH_MIPSEL64N32",
	"SCMP_ARCH_PARISC",      "SCMP_ARCH_PARISC64",
	"SCMP_ARCH_PPC",         "SCMP_ARCH_PPC64",
	"SCMP_ARCH_PPC64LE",     "SCMP_ARCH_RISCV64",
	"SCMP_ARCH_S390",        "SCMP_ARCH_S390X",
#ifdef SCMP_ARCH_SH
	"SCMP_ARCH_SH",          "SCMP_ARCH_SHEB",
#endif
	"SCMP_ARCH_X32",         "SCMP_ARCH_X86",
	"SCMP_ARCH_X86_64",      NULL,
};

uint32_t lr_seccomp_arch_token(const char *name)
{
	const struct lr_name *a = lr_name_find(archs, LR_ARRAY_SIZE(archs), name);

	return a ? (uint32_t)a->value : 0;
}

uint32_t lr_seccomp_arch_native(void)
{
#if defined(__x86_64__)
	return SCMP_ARCH_X86_64;
#elif defined(__i386__)
	return SCMP_ARCH_X86;
#elif defined(__aarch64__)
	return SCMP_ARCH_AARCH64;
#elif defined(__arm__)
	return SCMP_ARCH_ARM;
#elif defined(__riscv) && __riscv_xlen == 64
	return SCMP_ARCH_RISCV64;
#elif defined(__powerpc64__) && __BYTE_ORDER == __LITTLE_ENDIAN
	return SCMP_ARCH_PPC64LE;
#elif defined(__s390x__)
	return SCMP_ARCH_S390X;
#else
#error "SCMP_ARCH_* of this architecture is to be named here"
#endif
}

uint32_t lr_seccomp_arch_audit(uint32_t token)
{
	return token == SCMP_ARCH_X32 ? SCMP_ARCH_X86_64 : token;
}

bool lr_seccomp_arch_is_64(uint32_t token)
{
	/* n32 is marked as 64 bit for audit, but its arguments are 32 bit. */
	return (token & AUDIT_64) && token != SCMP_ARCH_MIPS64N32 && token != SCMP_ARCH_MIPSEL64N32;
}

bool lr_seccomp_arch_is_s390(uint32_t token)
{
	return token == SCMP_ARCH_S390 || token == SCMP_ARCH_S390X;
}

bool lr_seccomp_arch_same_endian(uint32_t token)
{
	return !!(token & AUDIT_LE) == (__BYTE_ORDER == __LITTLE_ENDIAN);
}

bool lr_seccomp_arch_private(uint32_t token, int64_t nr)
{
	return token == SCMP_ARCH_ARM && nr >= ARM_PRIVATE;
}

/*
 * System calls that libseccomp may not know (Debian 12's knows the first two). Since 5.1 a new one
 * has the same number everywhere (but for the base of the MIPS ABIs and the bit of x32).
 */
static const struct lr_name newer[] = {
	{"cachestat", 451},         /* 6.5 */
	{"fchmodat2", 452},         /* 6.6 */
	{"file_getattr", 468},      /* 6.17 */
	{"file_setattr", 469},      /* 6.17 */
	{"futex_requeue", 456},     /* 6.7 */
	{"futex_wait", 455},        /* 6.7 */
	{"futex_wake", 454},        /* 6.7 */
	{"getxattrat", 464},        /* 6.13 */
	{"listmount", 458},         /* 6.8 */
	{"listxattrat", 465},       /* 6.13 */
	{"lsm_get_self_attr", 459}, /* 6.8 */
	{"lsm_list_modules", 461},  /* 6.8 */
	{"lsm_set_self_attr", 460}, /* 6.8 */
	{"map_shadow_stack", 453},  /* 6.6 */
	{"mseal", 462},             /* 6.10 */
	{"open_tree_attr", 467},    /* 6.15 */
	{"removexattrat", 466},     /* 6.13 */
	{"setxattrat", 463},        /* 6.13 */
	{"statmount", 457},         /* 6.8 */
};

static int64_t newer_number(uint32_t token, const char *name)
{
	const struct lr_name *s = lr_name_find(newer, LR_ARRAY_SIZE(newer), name);

	if (!s)
		return token == SCMP_ARCH_X86_64 && lr_streq(name, "uretprobe") ? 335 : -1;
	switch (token) {
	case SCMP_ARCH_MIPS:
	case SCMP_ARCH_MIPSEL:
		return MIPS_O32_BASE + (int64_t)s->value;
	case SCMP_ARCH_MIPS64:
	case SCMP_ARCH_MIPSEL64:
		return MIPS_N64_BASE + (int64_t)s->value;
	case SCMP_ARCH_MIPS64N32:
	case SCMP_ARCH_MIPSEL64N32:
		return MIPS_N32_BASE + (int64_t)s->value;
	case SCMP_ARCH_X32:
		return LR_SECCOMP_X32_BIT | (int64_t)s->value;
	default:
		return (int64_t)s->value;
	}
}

static int compare_name(const void *name, const void *row)
{
	return strcmp(name, row); /* which begins with it */
}

/* libseccomp's: those of one call in all architectures; NULL: it doesn't know that name. */
static const uint16_t *row_of(const char *name)
{
	const struct numbers *row =
		bsearch(name, numbers, LR_ARRAY_SIZE(numbers), sizeof(numbers[0]), compare_name);

	return row ? row->nr : NULL;
}

/* -1: that architecture has no such call. */
static int64_t number_in(const uint16_t *row, uint32_t token)
{
	size_t i = 0;

	while (i < LR_ARRAY_SIZE(numbers_archs) && numbers_archs[i] != token)
		i++;
	if (i == LR_ARRAY_SIZE(numbers_archs) || row[i] == NUMBERS_NONE)
		return -1;
	if (row[i] & NUMBERS_PRIVATE)
		return ARM_PRIVATE | (row[i] & ~NUMBERS_PRIVATE);
	return token == SCMP_ARCH_X32 ? row[i] | (int64_t)LR_SECCOMP_X32_BIT : row[i];
}

bool lr_seccomp_is_syscall(const char *name)
{
	return row_of(name) || newer_number(SCMP_ARCH_X86_64, name) >= 0;
}

uint64_t lr_seccomp_numbers_digest(void)
{
	return NUMBERS_DIGEST;
}

/*
 * Calls behind socketcall(2) (first argument: <linux/net.h>) and ipc(2) (<linux/ipc.h>), with the
 * numbers of the direct ones that came later (sockets: 4.3, IPC: 5.1). libseccomp keeps these for
 * itself, so its table says that there are none.
 */
static const struct multiplexed {
	const char *name;
	uint16_t by; /* 102: socketcall, 117: ipc */
	uint16_t call;
	uint16_t x86, s390, ppc, mips; /* 0: none */
} multiplexed[] = {
	{"accept", 102, 5, 0, 0, 330, 168},
	{"accept4", 102, 18, 364, 364, 344, 334},
	{"bind", 102, 2, 361, 361, 327, 169},
	{"connect", 102, 3, 362, 362, 328, 170},
	{"getpeername", 102, 7, 368, 368, 332, 171},
	{"getsockname", 102, 6, 367, 367, 331, 172},
	{"getsockopt", 102, 15, 365, 365, 340, 173},
	{"listen", 102, 4, 363, 363, 329, 174},
	{"msgctl", 117, 14, 402, 402, 402, 402},
	{"msgget", 117, 13, 399, 399, 399, 399},
	{"msgrcv", 117, 12, 401, 401, 401, 401},
	{"msgsnd", 117, 11, 400, 400, 400, 400},
	{"recv", 102, 10, 0, 0, 336, 175},
	{"recvfrom", 102, 12, 371, 371, 337, 176},
	{"recvmmsg", 102, 19, 337, 357, 343, 335},
	{"recvmsg", 102, 17, 372, 372, 342, 177},
	{"semctl", 117, 3, 394, 394, 394, 394},
	{"semget", 117, 2, 393, 393, 393, 393},
	{"semop", 117, 1, 0, 0, 0, 0},
	{"semtimedop", 117, 4, 0, 392, 392, 0},
	{"send", 102, 9, 0, 0, 334, 178},
	{"sendmmsg", 102, 20, 345, 358, 349, 343},
	{"sendmsg", 102, 16, 370, 370, 341, 179},
	{"sendto", 102, 11, 369, 369, 335, 180},
	{"setsockopt", 102, 14, 366, 366, 339, 181},
	{"shmat", 117, 21, 397, 397, 397, 397},
	{"shmctl", 117, 24, 396, 396, 396, 396},
	{"shmdt", 117, 22, 398, 398, 398, 398},
	{"shmget", 117, 23, 395, 395, 395, 395},
	{"shutdown", 102, 13, 373, 373, 338, 182},
	{"socket", 102, 1, 359, 359, 326, 183},
	{"socketpair", 102, 8, 360, 360, 333, 184},
};

static bool is_ppc(uint32_t token)
{
	return token == SCMP_ARCH_PPC || token == SCMP_ARCH_PPC64 || token == SCMP_ARCH_PPC64LE;
}

static bool is_mips_o32(uint32_t token)
{
	return token == SCMP_ARCH_MIPS || token == SCMP_ARCH_MIPSEL;
}

static const struct multiplexed *find_multiplexed(uint32_t token, const char *name)
{
	size_t low = 0, high = LR_ARRAY_SIZE(multiplexed);

	if (token != SCMP_ARCH_X86 && !lr_seccomp_arch_is_s390(token) && !is_ppc(token) &&
	    !is_mips_o32(token))
		return NULL;
	while (low < high) {
		size_t mid = (low + high) / 2;
		int c = strcmp(name, multiplexed[mid].name);

		if (c == 0)
			return &multiplexed[mid];
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

bool lr_seccomp_multiplexed(uint32_t token, const char *name, uint32_t *nr, uint32_t *call)
{
	const struct multiplexed *m = find_multiplexed(token, name);

	if (m) {
		*nr = (is_mips_o32(token) ? MIPS_O32_BASE : 0) + m->by;
		*call = m->call;
	}
	return m;
}

static int64_t direct_number(uint32_t token, const char *name)
{
	const struct multiplexed *m = find_multiplexed(token, name);
	uint16_t nr = !m                               ? 0
		      : token == SCMP_ARCH_X86         ? m->x86
		      : lr_seccomp_arch_is_s390(token) ? m->s390
		      : is_mips_o32(token)             ? m->mips
						       : m->ppc;

	/* 64-bit architectures only: the others have semtimedop_time64. */
	if (nr == 392 && !(token & AUDIT_64))
		nr = 0;
	if (!nr)
		return -1;
	return is_mips_o32(token) ? MIPS_O32_BASE + nr : nr;
}

int64_t lr_seccomp_number(uint32_t token, const char *name)
{
	const uint16_t *row = row_of(name);

	if (!row)
		return newer_number(token, name);
	int64_t nr = number_in(row, token);
	return nr >= 0 ? nr : direct_number(token, name); /* multiplexed, or elsewhere */
}
