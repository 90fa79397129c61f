/* SPDX-License-Identifier: Apache-2.0 */
/* capture: the mappings of a process, out of /proc/PID/smaps. */
#define LR_ROOM "capture"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"

/* Two letters in "VmFlags:", what of it is carried, or why it can't be. */
static const struct {
	char flag[3];
	uint32_t carried;
	const char *refused;
} vm_flags[] = {
	{"gd", LR_SEED_GROWSDOWN, NULL},
	{"nr", LR_SEED_NORESERVE, NULL},
	{"dc", LR_SEED_DONTFORK, NULL},
	{"wf", LR_SEED_WIPEONFORK, NULL},
	{"dd", LR_SEED_DONTDUMP, NULL},
	{"mg", LR_SEED_MERGEABLE, NULL},
	{"hg", LR_SEED_HUGEPAGE, NULL},
	{"nh", LR_SEED_NOHUGEPAGE, NULL},
	{"sl", LR_SEED_SEALED, NULL},
	{"lo", LR_SEED_LOCKED, NULL},
	{"lf", LR_SEED_LOCKONFAULT, NULL}, /* Linux 6.8 */
	{"io", 0, "memory of a device"},
	{"pf", 0, "memory of a device"},
	{"ht", 0, "huge pages of hugetlbfs"},
	{"ss", 0, "a shadow stack"},
	{"um", 0, "memory under userfaultfd"},
	{"uw", 0, "memory under userfaultfd"},
	{"ui", 0, "memory under userfaultfd"},
	{"dp", 0, NULL}, /* droppable: comes up empty, as in a fork */
};

static void apply_flags(struct cap_vma *v, const char *text)
{
	v->may_write = lr_has_word(text, "mw");
	for (size_t i = 0; i < LR_ARRAY_SIZE(vm_flags); i++) {
		if (!lr_has_word(text, vm_flags[i].flag))
			continue;
		v->flags |= vm_flags[i].carried;
		if (vm_flags[i].refused)
			v->refused = (char *)vm_flags[i].refused;
	}
}

/* The kernel chooses the key of execute-only memory: in a child it is 1, the first that is free. With another number here,
 * key 1 may be the program's own; with 0 it may be read. */
static void apply_key(struct cap_vma *v, const char *text)
{
	const unsigned long key = strtoul(text, NULL, 10);

	v->keyed = key != (v->prot == PROT_EXEC ? 1 : 0);
}

/* "start-end perms offset major:minor inode   name" */
static bool parse_head(struct lr_arena *a, char *line, struct cap_vma *v)
{
	unsigned long long start, end, offset, inode;
	unsigned major, minor;
	char perms[5];
	int name = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, perms, &offset, &major,
		   &minor, &inode, &name) < 7)
		return false;
	*v = (struct cap_vma){.start = start,
			      .end = end,
			      .offset = offset,
			      .inode = inode,
			      .major = major,
			      .minor = minor,
			      .shared = perms[3] == 's'};
	v->prot = (perms[0] == 'r' ? PROT_READ : 0U) | (perms[1] == 'w' ? PROT_WRITE : 0U) |
		  (perms[2] == 'x' ? PROT_EXEC : 0U);
	v->name = lr_strdup(a, name ? line + name : "");
	return v->name;
}

static void note_special(struct cap_maps *m, const struct cap_vma *v)
{
	if (lr_streq(v->name, "[vdso]")) {
		m->vdso = v->start;
		m->vdso_end = v->end;
	} else if (lr_has_prefix(v->name, "[vvar")) {
		/* Several, one behind the other. */
		m->vvar = m->vvar ? m->vvar : v->start;
		m->vvar_end = v->end;
	}
}

int cap_maps_read(struct lr_arena *a, pid_t pid, const char *file, struct cap_maps *ret,
		  struct lr_err *err)
{
	struct cap_maps m = {0};
	char path[32], *text, *next;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	int r = cap_read_all(a, path, &text, &size, err);
	if (r < 0)
		return r;
	for (char *line = text; *line; line = next) {
		struct cap_vma v;
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = 0;
		if (lr_has_prefix(line, "VmFlags: ") && m.n) {
			apply_flags(&m.v[m.n - 1], line + strlen("VmFlags: "));
			continue;
		}
		if (lr_has_prefix(line, "ProtectionKey:") && m.n) {
			apply_key(&m.v[m.n - 1], line + strlen("ProtectionKey:"));
			continue;
		}
		if (!(*line >= '0' && *line <= '9') && !(*line >= 'a' && *line <= 'f'))
			continue;
		if (!parse_head(a, line, &v) || v.start >= UINT64_C(1) << 63)
			continue; /* vsyscall: the kernel's, and everybody's. */
		struct cap_vma *grown = lr_grow(a, m.v, m.n, sizeof(v));
		if (!grown)
			return lr_fail(err, ENOMEM, "list the mappings of process %d", pid);
		m.v = grown;
		m.v[m.n++] = v;
		note_special(&m, &v);
	}
	*ret = m;
	return 0;
}

int cap_open_mapping(pid_t pid, const struct cap_vma *v)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid,
		 (unsigned long long)v->start, (unsigned long long)v->end);
	return cap_open(path, O_RDONLY);
}

static bool is_special(const struct cap_vma *v)
{
	return lr_streq(v->name, "[vdso]") || lr_has_prefix(v->name, "[vvar");
}

const char *cap_maps_flagged(const struct cap_vma *v)
{
	if (v->keyed)
		return "memory with a protection key (pkey_mprotect(2))";
	if (is_special(v))
		return v->prot == (PROT_READ | (lr_streq(v->name, "[vdso]") ? PROT_EXEC : 0))
			       ? NULL
			       : "pages of the kernel's with another protection";
	return v->refused ? v->refused : v->flags & LR_SEED_SEALED ? "sealed memory" : NULL;
}

/* `before`: the mapping before it, or NULL. Of a file that is mapped in parts, as a program is, only the first one is
 * looked at. */
static bool is_elsewhere(struct cap *c, const struct cap_process *p, const struct cap_vma *v,
			 const struct cap_vma *before)
{
	/* Memory, and what is in a tmpfs that goes along, are found by their numbers. */
	if (!v->inode || cap_is_shared_memory(c, v) ||
	    cap_tmpfs_has(c, makedev(v->major, v->minor)))
		return false;
	if (before && before->inode == v->inode && before->major == v->major &&
	    before->minor == v->minor && lr_streq(before->name, v->name))
		return false;
	return !cap_mapping_leads(c, p, v);
}

void cap_maps_refuse(struct cap *c, const struct cap_process *p)
{
	for (size_t i = 0; i < p->maps.n; i++) {
		const struct cap_vma *v = &p->maps.v[i];
		const char *why = cap_maps_flagged(v);
		if (!why && is_special(v))
			continue;
		if (!why && (lr_streq(v->name, "anon_inode:[lean-seed]") ||
			     lr_streq(v->name, "[lean-seed]")))
			why = "memory that the kernel module still may have to bring";
		if (!why && lr_has_prefix(v->name, "anon_inode:"))
			why = "a mapping of something that is no file";
		if (!why && lr_has_prefix(v->name, "/SYSV"))
			why = "shared memory of System V";
		if (!why && lr_has_prefix(v->name, "/[aio]"))
			why = "a ring of io_setup(2)";
		if (!why && lr_streq(v->name, CAP_SECRET))
			why = "secret memory";
		/* Its breakpoints are in pages that would be taken for the program's own. */
		if (!why && lr_has_prefix(v->name, "[uprobes"))
			why = "a uprobe that somebody has set";
		if (!why && v->inode && lr_has_suffix(v->name, " (deleted)") &&
		    !cap_is_shared_memory(c, v) && !cap_tmpfs_has(c, makedev(v->major, v->minor)))
			why = "a deleted file that is mapped";
		if (!why && is_elsewhere(c, p, v, i ? v - 1 : NULL))
			why = "a file that is in none of the container's mounts, and is mapped,";
		if (why)
			cap_refuse(c, p, "%s at %llx (%s)", why, (unsigned long long)v->start,
				   *v->name ? v->name : "anonymous");
	}
}
