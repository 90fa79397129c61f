/* SPDX-License-Identifier: Apache-2.0 */
/* resume: where the restorer can be while one memory goes and another comes. */
#define LR_ROOM "resume"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resuming.h"

/* A stack grows, and so does what is mapped next to something. */
#define MARGIN UINT64_C(0x1000000)

static bool overlaps(uint64_t at, uint64_t size, uint64_t start, uint64_t end, uint64_t *next)
{
	if (at + size + MARGIN <= start || at >= end + MARGIN)
		return false;
	*next = (end + MARGIN + MARGIN - 1) & ~(MARGIN - 1);
	return true;
}

uint64_t layout_hole(const struct own_memory *own, const struct lr_seed *s,
		     const struct lr_seed_mm *mm, uint64_t size)
{
	uint64_t at = LR_RESUME_LOWEST, next;

	for (bool moved = true; moved;) {
		moved = false;
		for (size_t i = 0; i < own->n; i++)
			if (overlaps(at, size, own->v[i].start, own->v[i].end, &next)) {
				at = next;
				moved = true;
			}
		for (uint32_t i = 0; i < mm->vmas.count; i++) {
			const struct lr_seed_vma *v = lr_seed_vma(s, mm->vmas.first + i);
			if (overlaps(at, size, v->start, v->end, &next)) {
				at = next;
				moved = true;
			}
		}
		if (at > LR_RESUME_HIGHEST || size > LR_RESUME_HIGHEST - at)
			return 0;
	}
	return at;
}

static FILE *open_maps(int proc)
{
	int fd = proc < 0 ? lr_open("/proc/self/maps", O_RDONLY | O_CLOEXEC)
			  : openat(proc, "self/maps", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "re");

	if (!f)
		lr_close(fd);
	return f;
}

int own_memory_read(int proc, struct lr_arena *a, struct own_memory *ret, struct lr_err *err)
{
	FILE *f = open_maps(proc);
	struct own_memory own = {0};
	char line[4400];

	if (!f)
		return lr_fail(err, errno, "read /proc/self/maps");
	while (fgets(line, sizeof(line), f)) {
		unsigned long long start, end;
		struct own_range *v = lr_grow(a, own.v, own.n, sizeof(*v));
		if (!v || sscanf(line, "%llx-%llx", &start, &end) != 2) {
			fclose(f);
			return lr_fail(err, v ? EIO : ENOMEM, "read /proc/self/maps");
		}
		own.v = v;
		if (start >= UINT64_C(1) << 63)
			continue; /* vsyscall: everybody's */
		bool vdso = strstr(line, "[vdso]") != NULL;
		v[own.n++] = (struct own_range){start, end, vdso || strstr(line, "[vvar"), vdso};
	}
	/* Without all of it there is no vDSO for the program, and the restorer may come to lie on us. */
	const int why = ferror(f) ? errno : 0;
	fclose(f);
	if (why)
		return lr_fail(err, why, "read /proc/self/maps");
	*ret = own;
	return 0;
}
