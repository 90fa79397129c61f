/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd: limits as properties, made from what is written to the cgroup's files: one place decides
 * what a limit comes to, and no property can say another thing than its file (but for TasksMax=0, which systemd
 * refuses). What systemd has no
 * property for (burst, idle, rates of single devices, huge pages) it leaves alone.
 */
#define LR_ROOM "systemd"

#include "src/systemd/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"

#define INFINITE "uint64 18446744073709551615"
#define CPUS_MAX 8192
#define PERIOD   100000 /* the kernel's default, µs */

enum kind {
	AMOUNT,   /* bytes or a count; "max" */
	TASKS,    /* the same; 0 becomes 1, which forbids the same: the first process is that one */
	WEIGHT,   /* a number */
	QUOTA,    /* v2's cpu.max, "quota period" */
	V1_QUOTA, /* µs in each period, -1 for none */
	V1_PERIOD, /* µs */
	LIST,      /* "0-3,7" */
};

struct row {
	const char *file, *property;
	enum kind kind;
	bool newer; /* than the oldest systemd that is still around (239) */
};

static const struct row rows_v2[] = {
	{"memory.max", "MemoryMax", AMOUNT, false},
	{"memory.high", "MemoryHigh", AMOUNT, false},
	{"memory.low", "MemoryLow", AMOUNT, false},
	{"memory.min", "MemoryMin", AMOUNT, true},
	{"memory.swap.max", "MemorySwapMax", AMOUNT, false},
	{"memory.zswap.max", "MemoryZSwapMax", AMOUNT, true},
	{"cpu.weight", "CPUWeight", WEIGHT, false},
	{"cpu.max", "CPUQuotaPerSecUSec", QUOTA, false},
	{"cpuset.cpus", "AllowedCPUs", LIST, true},
	{"cpuset.mems", "AllowedMemoryNodes", LIST, true},
	{"pids.max", "TasksMax", TASKS, false},
	{"io.weight", "IOWeight", WEIGHT, false},
};

static const struct row rows_v1[] = {
	{"memory.limit_in_bytes", "MemoryLimit", AMOUNT, false},
	{"cpu.shares", "CPUShares", WEIGHT, false},
	{"cpu.cfs_quota_us", "CPUQuotaPerSecUSec", V1_QUOTA, false},
	{"cpu.cfs_period_us", "CPUQuotaPeriodUSec", V1_PERIOD, true},
	{"pids.max", "TasksMax", TASKS, false},
	{"blkio.weight", "BlockIOWeight", WEIGHT, false},
};

struct maker {
	struct lr_arena *arena;
	struct lr_systemd_props *out;
	bool update;
	uint64_t v1_quota, v1_period;            /* 0: not written */
	const struct lr_systemd_limit *v1_write; /* of the quota */
	bool no_memory;
};

bool lr_systemd_put(struct lr_systemd_props *props, struct lr_systemd_prop one,
		    struct lr_arena *arena)
{
	struct lr_systemd_prop *v = props->v;
	size_t i = 0;

	while (i < props->n && !lr_streq(v[i].name, one.name))
		i++;
	if (i == props->n)
		v = lr_grow(arena, v, i, sizeof(*v));
	if (!v || !one.value)
		return false;
	v[i] = one;
	props->v = v;
	props->n += i == props->n;
	return true;
}

static void emit(struct maker *m, const char *name, const char *value, const char *where,
		 bool newer)
{
	const struct lr_systemd_prop one = {name, value, where, newer};

	m->no_memory |= !lr_systemd_put(m->out, one, m->arena);
}

/* "max" and -1 are no limit; the kernel takes K, M and G, too. */
static const char *amount(struct maker *m, const char *text)
{
	static const char units[] = "kmgt";
	char *end;
	uint64_t n;
	const char *unit;

	if (lr_streq(text, "max") || text[0] == '-')
		return INFINITE;
	errno = 0;
	n = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end | 0x20) : NULL;
	for (const char *u = units; unit && u <= unit; u++)
		n = n > UINT64_MAX / 1024 ? UINT64_MAX : n * 1024;
	if (end == text || errno || end[unit != NULL])
		return NULL;
	return lr_strf(m->arena, "uint64 %" PRIu64, n);
}

/* systemd counts in percents of a CPU and would round down: rounded up, what is written to the
 * file afterwards is never more than it allows. */
static const char *per_second(struct maker *m, uint64_t quota, uint64_t period)
{
	uint64_t us = quota > UINT64_MAX / 1000000 || !period ? 0 : quota * 1000000 / period;

	return us ? lr_strf(m->arena, "uint64 %" PRIu64, (us + 9999) / 10000 * 10000) : INFINITE;
}

/* What an update leaves as it is. */
static uint64_t present_period(const struct maker *m, const char *path, bool v2)
{
	char text[64], file[PATH_MAX];
	const char *number = text;
	uint64_t n;
	int len = (int)(strrchr(path, '/') - path);

	if (!m->update ||
	    snprintf(file, sizeof(file), "%.*s/%s", len, path,
		     v2 ? "cpu.max" : "cpu.cfs_period_us") >= (int)sizeof(file) ||
	    lr_read_file_at(AT_FDCWD, file, text, sizeof(text)) < 0)
		return PERIOD;
	if (v2)
		number = strchr(text, ' ');
	n = number ? strtoull(number, NULL, 10) : 0;
	return n ? n : PERIOD;
}

static void quota(struct maker *m, const struct lr_systemd_limit *w)
{
	const char *space = strchr(w->value, ' ');
	uint64_t period = space ? strtoull(space, NULL, 10) : present_period(m, w->file, true);
	/* "max" is no number. */
	uint64_t us = strtoull(w->value, NULL, 10);

	emit(m, "CPUQuotaPerSecUSec", per_second(m, us, period), w->where, false);
	if (space)
		emit(m, "CPUQuotaPeriodUSec", lr_strf(m->arena, "uint64 %" PRIu64, period),
		     w->where, true);
}

/* "0-3,7" as a mask, the lowest number in the first byte's lowest bit. */
static const char *list(struct maker *m, const char *text)
{
	uint8_t mask[CPUS_MAX / 8] = {0};
	size_t bytes = 0;
	char *out, *p;

	for (const char *s = text; *s;) {
		char *end;
		unsigned long from = strtoul(s, &end, 10), to = from;

		if (end != s && *end == '-') {
			s = end + 1;
			to = strtoul(s, &end, 10);
		}
		if (end == s || from > to || to >= CPUS_MAX || (*end && *end != ','))
			return NULL;
		for (; from <= to; from++)
			mask[from / 8] |= (uint8_t)(1U << from % 8);
		bytes = to / 8 + 1 > bytes ? to / 8 + 1 : bytes;
		s = end + (*end == ',');
	}
	out = p = bytes ? lr_alloc(m->arena, bytes * 11 + 4) : NULL;
	for (size_t i = 0; out && i < bytes; i++)
		p += sprintf(p, "%sbyte 0x%02x", i ? ", " : "[", mask[i]);
	return out ? strcpy(p, "]"), out : NULL;
}

static const struct row *find_row(const char *file, bool v2)
{
	const struct row *rows = v2 ? rows_v2 : rows_v1;
	size_t n = v2 ? LR_ARRAY_SIZE(rows_v2) : LR_ARRAY_SIZE(rows_v1);

	for (size_t i = 0; i < n; i++)
		if (lr_streq(rows[i].file, file))
			return &rows[i];
	return NULL;
}

static void convert(struct maker *m, const struct lr_systemd_limit *w, bool v2)
{
	const char *file = strrchr(w->file, '/') + 1, *value = w->value, *text = NULL;
	const struct row *row = find_row(file, v2);

	if (!row)
		return;
	switch (row->kind) {
	case QUOTA:
		quota(m, w);
		return;
	case V1_QUOTA:
		m->v1_quota = value[0] == '-' ? UINT64_MAX : strtoull(value, NULL, 10);
		m->v1_write = w;
		return;
	case V1_PERIOD:
		m->v1_period = strtoull(value, NULL, 10);
		text = amount(m, value);
		break;
	case AMOUNT:
		text = amount(m, value);
		break;
	case TASKS:
		text = amount(m, lr_streq(value, "0") ? "1" : value);
		break;
	case WEIGHT: /* "default 100" is the same; "8:0 100" speaks of one device */
		if (lr_has_prefix(value, "default "))
			value += strlen("default ");
		text = strchr(value, ' ') ? NULL : amount(m, value);
		break;
	case LIST:
		text = list(m, value);
		break;
	}
	/* What we cannot read, the kernel may: then only systemd does not know of it. */
	if (text)
		emit(m, row->property, text, w->where, row->newer);
	else
		lr_debug("systemd: %s = %s is not told to systemd", file, value);
}

/*
 * v1 only, where systemd would otherwise allow all devices again on daemon-reload. On v2 a unit
 * without rules gets no program of systemd's, and ours, attached beside, stays: so do the devices
 * that others (a GPU's tools) have added to it.
 */
#define DEVICE_MAX sizeof(", ('/dev/block/123456789012345:123456789012345', 'rwm')")
static void devices(struct maker *m, const struct lr_systemd_limit *w, size_t n)
{
	bool strict = false;
	char *text = lr_alloc(m->arena, n * DEVICE_MAX + 1), *p = text;

	m->no_memory |= !text;
	for (size_t i = 0; text && i < n; i++) {
		char type, major[16], minor[16], access[4];

		if (lr_has_suffix(w[i].file, "/devices.deny"))
			strict |= lr_streq(w[i].value, "a");
		if (!strict || !lr_has_suffix(w[i].file, "/devices.allow") ||
		    sscanf(w[i].value, "%c %15[0-9*]:%15[0-9*] %3[rwm]", &type, major, minor,
			   access) != 4)
			continue;
		if (minor[0] == '*')
			p += sprintf(p, "%s('%s-%s', '%s')", p == text ? "[" : ", ",
				     type == 'b' ? "block" : "char", major, access);
		else if (major[0] != '*')
			p += sprintf(p, "%s('/dev/%s/%s:%s', '%s')", p == text ? "[" : ", ",
				     type == 'b' ? "block" : "char", major, minor, access);
	}
	if (!strict)
		return;
	emit(m, "DevicePolicy", "'strict'", "linux.resources.devices", false);
	if (p != text)
		emit(m, "DeviceAllow", (strcpy(p, "]"), text), "linux.resources.devices", false);
}

int lr_systemd_limits(const struct lr_systemd_limit *v, size_t n, bool v2, bool update,
		      struct lr_arena *arena, struct lr_systemd_props *ret, struct lr_err *err)
{
	struct maker m = {.arena = arena, .out = ret, .update = update};

	for (size_t i = 0; i < n; i++)
		convert(&m, &v[i], v2);
	if (m.v1_quota) {
		uint64_t period =
			m.v1_period ? m.v1_period : present_period(&m, m.v1_write->file, false);

		emit(&m, "CPUQuotaPerSecUSec", per_second(&m, m.v1_quota, period),
		     m.v1_write->where, false);
	}
	if (!v2 && !update)
		devices(&m, v, n);
	return m.no_memory ? lr_fail(err, ENOMEM, "cannot plan the unit") : 0;
}
