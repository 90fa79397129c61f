/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters: gcov's counters of a program, in a file that all of its processes share.
 *
 * gcov saves its counters when a process exits. Few of the runtime's do: they end by _exit or by a
 * signal, or become the container's program; and they have another root by then, where gcov finds
 * no directory, or another user, who may not write there. So counters.ld puts the counters on pages
 * of their own, and before main a file is mapped there: what a process counts is in the file at
 * once, whatever becomes of the process. No descriptor stays open.
 *
 * With LR_COVERAGE_DUMP in its environment a program writes what its file says as gcov does, and
 * ends.
 */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_MAX 32

/* Of this program or this library: each has its own. */
extern char lr_counters_begin[], lr_counters_end[];
extern const ElfW(Ehdr) __ehdr_start;
#pragma GCC visibility push(hidden)
void __wrap___gcov_exit(void);
#pragma GCC visibility pop
void __gcov_dump(void);

/* What gcov calls at exit, to save; it would be too late for most, and twice for the others. */
void __wrap___gcov_exit(void)
{
}

/* The build id within one segment of notes, in hexadecimal. */
static int find_id(const char *notes, size_t size, size_t align, char *hex)
{
	for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
		const ElfW(Nhdr) *note = (const void *)(notes + at);
		size_t name = at + sizeof(*note);
		size_t desc = name + ((note->n_namesz + align - 1) & ~(align - 1));

		if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= ID_MAX &&
		    strcmp(notes + name, "GNU") == 0) {
			for (size_t i = 0; i < note->n_descsz; i++)
				sprintf(hex + 2 * i, "%02x", (unsigned char)notes[desc + i]);
			return 1;
		}
		at = desc + ((note->n_descsz + align - 1) & ~(align - 1));
	}
	return 0;
}

/* A copy of a program has another path, but the same id. Its notes are where the file begins. */
static int build_id(char *hex)
{
	const char *base = (const char *)&__ehdr_start;
	const ElfW(Phdr) *seg = (const void *)(base + __ehdr_start.e_phoff);

	for (int i = 0; i < __ehdr_start.e_phnum; i++) {
		if (seg[i].p_type == PT_NOTE && find_id(base + seg[i].p_offset, seg[i].p_filesz,
							seg[i].p_align == 8 ? 8 : 4, hex))
			return 1;
	}
	return 0;
}

/* The first user of a file makes it; another user's process may write there, too. */
static int open_file(const char *path)
{
	int fd = -1;

	for (int i = 0; i < 3 && fd < 0; i++) {
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			break;
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0)
			(void)fchmod(fd, 0666);
	}
	return fd;
}

/* Without the file, as within a container, the counters of this one process are lost. */
static void map_file(void)
{
	char path[sizeof(LR_COVERAGE_FILES) + 1 + 2 * ID_MAX + 1] = LR_COVERAGE_FILES "/";
	size_t size = (size_t)(lr_counters_end - lr_counters_begin);
	struct stat st;

	if (size == 0 || !build_id(path + strlen(path)))
		return;
	int fd = open_file(path);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && ((size_t)st.st_size >= size || ftruncate(fd, (off_t)size) == 0))
		(void)mmap(lr_counters_begin, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			   fd, 0);
	close(fd);
}

__attribute__((constructor)) static void begin(void)
{
	map_file();
	if (getenv("LR_COVERAGE_DUMP")) {
		__gcov_dump();
		_exit(0);
	}
}
