/* SPDX-License-Identifier: Apache-2.0 */
/* stats: the formats of statistics files. */
#define LR_ROOM "stats"

#include "src/stats/parse.h"

#include <ctype.h>
#include <stdlib.h>

#include "src/base/str.h"

static uint64_t number(const char *text, const char **end)
{
	char *stop;
	uint64_t n;

	if (lr_has_prefix(text, "max")) {
		if (end)
			*end = text + 3;
		return UINT64_MAX;
	}
	n = strtoull(text, &stop, 10);
	if (end)
		*end = stop;
	return n;
}

bool lr_stats_text(const char *dir, const char *file, char buf[4096])
{
	if (dir && lr_cgroup_read(dir, file, buf, 4096) >= 0)
		return true;
	buf[0] = '\0';
	return false;
}

uint64_t lr_stats_number(const char *dir, const char *file)
{
	char text[64];

	if (!dir || lr_cgroup_read(dir, file, text, sizeof(text)) < 0)
		return 0;
	return number(text, NULL);
}

uint64_t lr_stats_key(const char *text, const char *key)
{
	uint64_t n;

	return text && lr_cgroup_flat_get(text, key, &n) ? n : 0;
}

uint64_t *lr_stats_parse_list(struct lr_arena *arena, const char *text, size_t *n)
{
	uint64_t *v = NULL;

	*n = 0;
	if (!text)
		return NULL;
	for (const char *p = text; p += strspn(p, " "), isdigit((unsigned char)*p);) {
		uint64_t *bigger = lr_grow(arena, v, *n, sizeof(*v));

		if (!bigger)
			break;
		v = bigger;
		v[(*n)++] = number(p, &p);
	}
	return v;
}

static void psi_line(const char *line, struct lr_stats_psi_line *l)
{
	/* Not sscanf: the decimal point must not follow the locale. */
	static const char *const keys[] = {"avg10=", "avg60=", "avg300="};
	double *values[] = {&l->avg10, &l->avg60, &l->avg300};
	const char *p;

	for (size_t i = 0; i < LR_ARRAY_SIZE(keys); i++) {
		const char *frac;
		double scale = 0.1;

		if (!(p = strstr(line, keys[i])))
			return;
		*values[i] = (double)number(p + strlen(keys[i]), &frac);
		if (*frac == '.')
			for (frac++; isdigit((unsigned char)*frac); frac++, scale /= 10)
				*values[i] += (*frac - '0') * scale;
	}
	if ((p = strstr(line, "total=")))
		l->total = number(p + 6, NULL);
}

void lr_stats_read_psi(const char *dir, const char *file, struct lr_stats_psi *psi)
{
	char text[4096], *full;

	/* EOPNOTSUPP: the kernel was booted with psi=0. */
	if (!lr_stats_text(dir, file, text))
		return;
	psi->present = true;
	full = strstr(text, "full ");
	if (full) {
		psi_line(full, &psi->full);
		*full = '\0';
	}
	if (lr_has_prefix(text, "some "))
		psi_line(text, &psi->some);
}

int lr_stats_add_blkio(struct lr_arena *arena, struct lr_stats_blkio_list *l, uint64_t major,
		       uint64_t minor, const char *op, uint64_t value)
{
	struct lr_stats_blkio_entry *v = lr_grow(arena, l->v, l->n, sizeof(*v));

	if (!v || !op)
		return -ENOMEM;
	l->v = v;
	v[l->n++] = (struct lr_stats_blkio_entry){
		.major = major, .minor = minor, .op = op, .value = value};
	return 0;
}

void lr_stats_parse_blkio(struct lr_arena *arena, const char *text, struct lr_stats_blkio_list *l)
{
	for (const char *p = text; p && *p; p += strcspn(p, "\n"), p += *p == '\n') {
		const char *q = p, *op = "";
		uint64_t major = number(q, &q), minor;

		if (q == p || *q != ':')
			continue;
		minor = number(q + 1, &q);
		q += strspn(q, " ");
		if (isalpha((unsigned char)*q) && !lr_has_prefix(q, "max")) {
			size_t len = strcspn(q, " \n");

			op = lr_strndup(arena, q, len);
			q += len;
			q += strspn(q, " ");
		}
		if (lr_stats_add_blkio(arena, l, major, minor, op, number(q, NULL)) < 0)
			return;
	}
}

void lr_stats_parse_rdma(struct lr_arena *arena, const char *text, struct lr_stats_rdma **v,
			 size_t *n)
{
	for (const char *p = text; p && *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t len = strcspn(p, "\n"), name = strcspn(p, " \n");
		char *line = lr_strndup(arena, p, len), *h, *o;
		struct lr_stats_rdma *bigger = lr_grow(arena, *v, *n, sizeof(**v));
		uint64_t handles, objects;

		if (!line || !bigger || name == len)
			return;
		h = strstr(line, "hca_handle=");
		o = strstr(line, "hca_object=");
		handles = h ? number(h + 11, NULL) : 0;
		objects = o ? number(o + 11, NULL) : 0;
		line[name] = '\0';
		*v = bigger;
		bigger[(*n)++] = (struct lr_stats_rdma){
			.device = line,
			.hca_handles = handles > UINT32_MAX ? UINT32_MAX : handles,
			.hca_objects = objects > UINT32_MAX ? UINT32_MAX : objects,
		};
	}
}

void lr_stats_parse_map(struct lr_arena *arena, const char *text, struct lr_stats_kv **v, size_t *n)
{
	for (const char *p = text; p && *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t name = strcspn(p, " \n");
		struct lr_stats_kv *bigger = lr_grow(arena, *v, *n, sizeof(**v));
		char *key = lr_strndup(arena, p, name);

		if (!bigger || !key || p[name] != ' ')
			return;
		*v = bigger;
		bigger[(*n)++] = (struct lr_stats_kv){key, number(p + name + 1, NULL)};
	}
}
