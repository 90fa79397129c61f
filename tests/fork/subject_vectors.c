/* SPDX-License-Identifier: Apache-2.0 */
/* The registers that XSAVE saves. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/fork/subject.h"

#define PAGE 4096

/* ---- vector registers ------------------------------------------------------------------------ */

/* All sixteen hold something of their own while the flag, in a file that is mapped, is 0. */
__attribute__((target("avx"))) static void spin(const volatile char *flag, const char *in,
						char *out)
{
	__asm__ volatile("vmovdqu (%1), %%ymm0\n\tvmovdqu 32(%1), %%ymm1\n\t"
			 "vmovdqu 64(%1), %%ymm7\n\tvmovdqu 96(%1), %%ymm8\n\t"
			 "vmovdqu 128(%1), %%ymm14\n\tvmovdqu 160(%1), %%ymm15\n\t"
			 "1: pause\n\tcmpb $0, (%0)\n\t"
			 "je 1b\n\t"
			 "vmovdqu %%ymm0, (%2)\n\tvmovdqu %%ymm1, 32(%2)\n\t"
			 "vmovdqu %%ymm7, 64(%2)\n\tvmovdqu %%ymm8, 96(%2)\n\t"
			 "vmovdqu %%ymm14, 128(%2)\n\tvmovdqu %%ymm15, 160(%2)\n\tvzeroupper\n\t"
			 :
			 : "r"(flag), "r"(in), "r"(out)
			 : "memory", "cc", "xmm0", "xmm1", "xmm7", "xmm8", "xmm14", "xmm15");
}

void subject_vectors(void)
{
	char in[192], out[192] = {0};
	int fd = open("flag", O_RDWR | O_CREAT, 0600);
	EXPECT(fd >= 0 && ftruncate(fd, PAGE) == 0);
	char *flag = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	double third = 1.0 / 3;

	EXPECT(flag != MAP_FAILED);
	*flag = 0;
	for (int i = 0; i < 192; i++)
		in[i] = (char)(i * 7 + 3);
	close(open("ready", O_WRONLY | O_CREAT, 0600));
	spin(flag, in, out);
	EXPECT(memcmp(in, out, sizeof(in)) == 0);
	EXPECT(third * 3 == 1.0);
}

/* ---- AMX's tiles ----------------------------------------------------------------------------- */

#define TILE 1024 /* bytes: sixteen rows of 64 */

struct tile_config {
	uint8_t palette, start_row, zero[14];
	uint16_t columns[16];
	uint8_t rows[16];
};

static void load_tile(const uint8_t *from)
{
	const struct tile_config config = {.palette = 1, .columns = {64}, .rows = {16}};

	__asm__ volatile("ldtilecfg (%0)\n\ttileloadd (%1, %2), %%tmm0"
			 :
			 : "r"(&config), "r"(from), "r"(INT64_C(64))
			 : "memory");
}

static void store_tile(uint8_t *to)
{
	__asm__ volatile("tilestored %%tmm0, (%0, %1)" : : "r"(to), "r"(INT64_C(64)) : "memory");
}

static void begin_tiles(uint8_t *in)
{
	/* ARCH_REQ_XCOMP_PERM */
	EXPECT(syscall(SYS_arch_prctl, 0x1023, 18) == 0);
	for (int i = 0; i < TILE; i++)
		in[i] = (uint8_t)(i * 11 + 5);
}

static void check_tile(const uint8_t *in)
{
	uint8_t out[TILE] = {0};

	store_tile(out);
	EXPECT(memcmp(in, out, TILE) == 0);
}

static void *other_tiles(void *arg)
{
	pthread_barrier_t *both = arg;
	uint8_t in[TILE];

	for (int i = 0; i < TILE; i++)
		in[i] = (uint8_t)(i * 5 + 1);
	load_tile(in);
	pthread_barrier_wait(both);
	/* System calls leave them alone. */
	pthread_barrier_wait(both);
	check_tile(in);
	return NULL;
}

/* Loaded ones, in two threads. */
void subject_tiles(void)
{
	pthread_barrier_t both;
	pthread_t other;
	uint8_t in[TILE];

	begin_tiles(in);
	EXPECT(pthread_barrier_init(&both, NULL, 2) == 0);
	EXPECT(pthread_create(&other, NULL, other_tiles, &both) == 0);
	pthread_barrier_wait(&both);
	load_tile(in);
	subject_ready();
	check_tile(in);
	pthread_barrier_wait(&both);
	EXPECT(pthread_join(other, NULL) == 0);
}

/* Who may use them, and has none at the moment, uses them later. */
void subject_notiles(void)
{
	uint8_t in[TILE];

	begin_tiles(in);
	load_tile(in);
	__asm__ volatile("tilerelease");
	subject_ready();
	load_tile(in);
	check_tile(in);
}

/* ---- protection keys ------------------------------------------------------------------------- */

static uint32_t rights(void)
{
	uint32_t pkru, unused;

	__asm__ volatile("rdpkru" : "=a"(pkru), "=d"(unused) : "c"(0));
	return pkru;
}

static void set_rights(uint32_t pkru)
{
	__asm__ volatile("wrpkru" : : "a"(pkru), "c"(0), "d"(0) : "memory");
}

static bool may_be_given(void *page, long key)
{
	const bool may = syscall(SYS_pkey_mprotect, page, PAGE, PROT_READ | PROT_WRITE, key) == 0;

	EXPECT(may || errno == EINVAL);
	EXPECT(syscall(SYS_pkey_mprotect, page, PAGE, PROT_READ | PROT_WRITE, 0) == 0);
	return may;
}

static void *other_rights(void *arg)
{
	pthread_barrier_t *both = arg;
	const uint32_t mine = 0x55555454;

	set_rights(mine);
	pthread_barrier_wait(both);
	pthread_barrier_wait(both);
	EXPECT(rights() == mine);
	return NULL;
}

/*
 * Execute-only memory has the first key. By the second a thread may read, by the fourth another one may do all, by the
 * fifth nobody may do anything. The third was given back.
 */
void subject_keys(void)
{
	pthread_barrier_t both;
	pthread_t other;
	const uint32_t mine = 0x55555564;

	EXPECT(mmap(NULL, PAGE, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	for (long key = 2; key <= 5; key++)
		EXPECT(syscall(SYS_pkey_alloc, 0, 1) == key);
	EXPECT(syscall(SYS_pkey_free, 3) == 0);
	set_rights(mine);
	void *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(page != MAP_FAILED);
	EXPECT(pthread_barrier_init(&both, NULL, 2) == 0);
	EXPECT(pthread_create(&other, NULL, other_rights, &both) == 0);
	pthread_barrier_wait(&both);
	subject_ready();
	EXPECT(rights() == mine);
	EXPECT(may_be_given(page, 2) && may_be_given(page, 4) && may_be_given(page, 5));
	EXPECT(!may_be_given(page, 1) && !may_be_given(page, 3) && !may_be_given(page, 6));
	EXPECT(syscall(SYS_pkey_alloc, 0, 1) == 3);
	pthread_barrier_wait(&both);
	EXPECT(pthread_join(other, NULL) == 0);
}

/* The program has the first key, and nobody any rights by it: execute-only memory gets another one. */
void subject_firstkey(void)
{
	EXPECT(syscall(SYS_pkey_alloc, 0, 1) == 1);
	subject_ready();
	EXPECT(syscall(SYS_pkey_alloc, 0, 1) == 2 && syscall(SYS_pkey_free, 2) == 0);
	EXPECT(syscall(SYS_pkey_free, 1) == 0);
}
