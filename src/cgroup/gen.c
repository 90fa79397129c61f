/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: turning resources into writes. The helpers that v1 and v2 share, and the properties that
 * are written alike in both.
 */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <inttypes.h>

#define SHARES_MIN 2
#define SHARES_MAX 262144

static void no_memory(struct lr_cgroup_gen *g)
{
	g->r = lr_fail(g->err, ENOMEM, "cannot plan the limits");
}

void lr_cgroup_gen_refuse(struct lr_cgroup_gen *g, const char *where, const char *hint,
			  const char *fmt, ...)
{
	char text[400];
	va_list ap;

	if (g->r < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	g->r = lr_refuse(g->err, EINVAL, "%s", text);
	if (where)
		lr_err_at(g->err, "%s", where);
	if (hint)
		lr_err_hint(g->err, "%s", hint);
}

static void refuse_missing(struct lr_cgroup_gen *g, enum lr_cgroup_ctrl c, const char *where)
{
	const char *name = lr_cgroup_ctrl_v1(c);

	if (g->ref->mode == LR_CGROUP_NONE)
		g->r = lr_refuse(g->err, EOPNOTSUPP,
				 "a limit is set, but the container gets no cgroup");
	else if (g->ref->mode == LR_CGROUP_V2)
		g->r = lr_refuse(g->err, EOPNOTSUPP, "cgroup v2 has no counterpart of \"%s\"",
				 name);
	else
		g->r = lr_refuse(g->err, EOPNOTSUPP, "the cgroup controller \"%s\" is not mounted",
				 name);
	lr_err_at(g->err, "%s", where);
	if (g->ref->mode == LR_CGROUP_NONE)
		lr_err_hint(g->err, "remove the limit, or use the cgroupfs manager on a host with "
				    "cgroups mounted");
	else if (g->ref->mode != LR_CGROUP_V2)
		lr_err_hint(g->err,
			    "remove the limit, or mount it: mount -t cgroup -o %s cgroup "
			    "/sys/fs/cgroup/%s",
			    name, name);
}

void lr_cgroup_emit(struct lr_cgroup_gen *g, enum lr_cgroup_ctrl c, unsigned flags,
		    const char *where, const char *file, const char *fmt, ...)
{
	const char *dir = lr_cgroup_dir(g->ref, c);
	struct lr_cgroup_write *v;
	va_list ap;

	if (g->r < 0)
		return;
	if (!where)
		return no_memory(g);
	if (!dir) {
		if (flags & LR_W_TOLERATE)
			lr_cgroup_gen_ignored(where, "its controller is not mounted");
		else if (!(flags & LR_W_OPTIONAL))
			refuse_missing(g, c, where);
		return;
	}
	v = lr_grow(g->arena, g->v, g->n, sizeof(*v));
	if (!v)
		return no_memory(g);
	g->v = v;
	va_start(ap, fmt);
	v[g->n] = (struct lr_cgroup_write){
		/* The same file again: the same pointer, so that one open serves both. */
		.file = lr_concat(g->arena, dir, "/", file, NULL),
		.value = lr_strfv(g->arena, fmt, ap),
		.where = where,
		.flags = flags,
		.ctrl = c,
	};
	va_end(ap);
	if (!v[g->n].file || !v[g->n].value)
		return no_memory(g);
	if (g->n && lr_streq(v[g->n - 1].file, v[g->n].file))
		v[g->n].file = v[g->n - 1].file;
	g->n++;
	/* Files of the core ("cgroup.max.depth") need no controller. */
	if (lr_has_prefix(file, "cgroup."))
		return;
	if (!(flags & (LR_W_OPTIONAL | LR_W_TOLERATE | LR_W_DEVICE))) {
		g->need |= 1U << c;
		if (!g->where[c])
			g->where[c] = where;
	}
}

void lr_cgroup_emit_alt(struct lr_cgroup_gen *g, const char *file, const char *fmt, ...)
{
	struct lr_cgroup_write *w = g->n ? &g->v[g->n - 1] : NULL;
	const char *dir = w ? lr_cgroup_dir(g->ref, w->ctrl) : NULL;
	va_list ap;

	if (g->r < 0 || !dir)
		return;
	va_start(ap, fmt);
	w->alt_file = lr_strf(g->arena, "%s/%s", dir, file);
	w->alt_value = lr_strfv(g->arena, fmt, ap);
	va_end(ap);
	if (!w->alt_file || !w->alt_value)
		no_memory(g);
}

const char *lr_cgroup_where(struct lr_cgroup_gen *g, const char *list, size_t i)
{
	return lr_strf(g->arena, "%s[%zu]", list, i);
}

void lr_cgroup_gen_ignored(const char *where, const char *why)
{
	lr_warn("%s is ignored: %s", where, why);
}

/* ---- checks and conversions ------------------------------------------------------------------ */

bool lr_cgroup_check_swappiness(struct lr_cgroup_gen *g, const struct oci_memory *m)
{
	/* Older callers say -1 for "unset", which arrives as the largest number. */
	if (!m->swappiness || *m->swappiness == UINT64_MAX)
		return false;
	if (*m->swappiness > 100) {
		lr_cgroup_gen_refuse(g, "linux.resources.memory.swappiness", NULL,
				     "%" PRIu64 " is not between 0 and 100", *m->swappiness);
		return false;
	}
	return true;
}

bool lr_cgroup_check_blkio_weight(struct lr_cgroup_gen *g, const char *where, uint16_t w)
{
	if (w == 0)
		return false; /* runc's and Docker's "unset" */
	if (w < 10 || w > 1000) {
		lr_cgroup_gen_refuse(g, where, NULL, "weight %u is not between 10 and 1000", w);
		return false;
	}
	return true;
}

uint64_t lr_cgroup_weight_of_shares(uint64_t shares)
{
	if (shares < SHARES_MIN)
		shares = SHARES_MIN;
	if (shares > SHARES_MAX)
		shares = SHARES_MAX;
	return 1 + (shares - SHARES_MIN) * 9999 / (SHARES_MAX - SHARES_MIN);
}

uint64_t lr_cgroup_io_weight(uint64_t w)
{
	return 1 + (w - 10) * 9999 / 990;
}

int lr_cgroup_swap_of(int64_t limit, int64_t memsw, int64_t *ret, bool *set)
{
	*set = true;
	*ret = -1;
	if (memsw == 0) {
		/* Not asked for; but no limit on memory alone means none on both, as v1 has it. */
		*set = limit == -1;
		return 0;
	}
	if (memsw == -1)
		return 0;
	if (memsw < 0 || limit <= 0 || memsw < limit)
		return -EINVAL;
	*ret = memsw - limit;
	return 0;
}

/* ---- the same in both versions -------------------------------------------------------------- */

static void gen_hugepages(struct lr_cgroup_gen *g, const struct oci_hugepage_limits *list, bool v2)
{
	const char *suffix = v2 ? "max" : "limit_in_bytes";

	for (size_t i = 0; i < list->n && g->r == 0; i++) {
		const char *size = list->v[i].page_size;
		const char *where = lr_cgroup_where(g, "linux.resources.hugepageLimits", i);
		size_t digits = size ? strspn(size, "0123456789") : 0;

		/* The kernel's names: 64KB, 2MB, 1GB. It goes into a file name: nothing else. */
		if (digits == 0 || size[0] == '0' || digits > 10 || !strchr("KMG", size[digits]) ||
		    !lr_streq(size + digits + 1, "B")) {
			lr_cgroup_gen_refuse(g, where, "write it like \"2MB\"",
					     "not a page size: \"%.32s\"", size ? size : "");
			return;
		}
		char file[64];

		snprintf(file, sizeof(file), "hugetlb.%s.%s", size, suffix);
		lr_cgroup_emit(g, LR_CTRL_HUGETLB, 0, where, file, "%" PRIu64, list->v[i].limit);
		/* Reservations count too, where the kernel (5.7) can limit them: otherwise a
		 * process that maps more than the limit dies by SIGBUS on first touch. */
		snprintf(file, sizeof(file), "hugetlb.%s.rsvd.%s", size, suffix);
		lr_cgroup_emit(g, LR_CTRL_HUGETLB, LR_W_OPTIONAL, where, file, "%" PRIu64,
			       list->v[i].limit);
	}
}

static void gen_rdma(struct lr_cgroup_gen *g, const struct oci_rdmas *list)
{
	for (size_t i = 0; i < list->n && g->r == 0; i++) {
		const struct oci_rdma *d = &list->v[i];
		const char *where = lr_strf(g->arena, "linux.resources.rdma[\"%s\"]", d->device);
		char text[64] = "";

		if (!d->device || !*d->device || strpbrk(d->device, " \t\n")) {
			lr_cgroup_gen_refuse(g, "linux.resources.rdma", NULL,
					     "not the name of an RDMA device");
			return;
		}
		if (d->hca_handles)
			snprintf(text, sizeof(text), " hca_handle=%" PRIu32, *d->hca_handles);
		if (d->hca_objects)
			snprintf(text + strlen(text), sizeof(text) - strlen(text),
				 " hca_object=%" PRIu32, *d->hca_objects);
		if (text[0])
			lr_cgroup_emit(g, LR_CTRL_RDMA, 0, where, "rdma.max", "%s%s", d->device,
				       text);
	}
}

void lr_cgroup_gen_common(struct lr_cgroup_gen *g, const struct oci_resources *r, bool v2)
{
	if (r->pids && r->pids->limit) {
		/* 0 is a real limit of zero; any negative number is none. */
		if (*r->pids->limit < 0)
			lr_cgroup_emit(g, LR_CTRL_PIDS, LR_W_OPTIONAL, "linux.resources.pids.limit",
				       "pids.max", "max");
		else
			lr_cgroup_emit(g, LR_CTRL_PIDS, 0, "linux.resources.pids.limit", "pids.max",
				       "%" PRIi64, *r->pids->limit);
	}
	gen_hugepages(g, &r->hugepage_limits, v2);
	gen_rdma(g, &r->rdma);
}
