/* SPDX-License-Identifier: Apache-2.0 */
/*
 * criu: requests to bytes, bytes to responses: protocol buffers, version 2.
 */
#define LR_ROOM "criu"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/str.h"
#include "src/criu/criu.h"
#include "src/criu/fields.h"

enum kind { BOOL, INT, STRING, KEYS, FDS, ROOTS, PAGE_SERVER };

struct field {
	uint16_t number;
	uint8_t kind;
	uint16_t offset;
};

/* `name_` is rpc.proto's: tests/checkpoint/request.bats compares names, numbers and kinds with it. */
#define FIELD_AS(name_, number_, kind_, member_)                                                   \
	{                                                                                          \
		(number_), (kind_), offsetof(struct lr_criu_opts, member_)                         \
	}
#define FIELD(name_, number_, kind_) FIELD_AS(name_, number_, kind_, name_)

static const struct field fields[] = {
	FIELD(images_dir_fd, 1, INT),
	FIELD(pid, 2, INT),
	FIELD(leave_running, 3, BOOL),
	FIELD(ext_unix_sk, 4, BOOL),
	FIELD(tcp_established, 5, BOOL),
	FIELD(evasive_devices, 6, BOOL),
	FIELD(shell_job, 7, BOOL),
	FIELD(file_locks, 8, BOOL),
	FIELD(log_level, 9, INT),
	FIELD(log_file, 10, STRING),
	FIELD_AS(ps, 11, PAGE_SERVER, page_server),
	FIELD(notify_scripts, 12, BOOL),
	FIELD(root, 13, STRING),
	FIELD(parent_img, 14, STRING),
	FIELD(track_mem, 15, BOOL),
	FIELD(auto_dedup, 16, BOOL),
	FIELD(work_dir_fd, 17, INT),
	FIELD(link_remap, 18, BOOL),
	FIELD(manage_cgroups, 24, BOOL),
	FIELD(cg_root, 25, ROOTS),
	FIELD(rst_sibling, 26, BOOL),
	FIELD(inherit_fd, 27, FDS),
	FIELD(ext_masters, 30, BOOL),
	FIELD(manage_cgroups_mode, 34, INT),
	FIELD(external, 37, KEYS),
	FIELD(empty_ns, 38, INT),
	FIELD(tcp_skip_in_flight, 46, BOOL),
	FIELD(lazy_pages, 48, BOOL),
	FIELD(status_fd, 49, INT),
	FIELD(orphan_pts_master, 50, BOOL),
	FIELD(config_file, 51, STRING),
	FIELD(tcp_close, 52, BOOL),
	FIELD(lsm_profile, 53, STRING),
	FIELD(cgroup_yard, 60, STRING),
	FIELD(lsm_mount_context, 63, STRING),
	FIELD(network_lock, 64, INT),
};

/* ---- to bytes ------------------------------------------------------------------------------ */

/* Counts where `at` is NULL, writes where it is not. */
struct out {
	uint8_t *at;
	size_t n;
};

static void put(struct out *o, const void *bytes, size_t n)
{
	if (o->at && n)
		memcpy(o->at + o->n, bytes, n);
	o->n += n;
}

static void put_varint(struct out *o, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	do
		bytes[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
	while ((v >>= 7));
	put(o, bytes, n);
}

static void put_tag(struct out *o, unsigned number, enum lr_criu_wire wire)
{
	put_varint(o, (uint64_t)number << 3 | wire);
}

static void put_int(struct out *o, unsigned number, int64_t v)
{
	put_tag(o, number, LR_CRIU_WIRE_VARINT);
	put_varint(o, (uint64_t)v);
}

static void put_string(struct out *o, unsigned number, const char *s)
{
	if (!s)
		return;
	put_tag(o, number, LR_CRIU_WIRE_BYTES);
	put_varint(o, strlen(s));
	put(o, s, strlen(s));
}

/* A message within the message: fill is called to count, and again to write. */
static void put_message(struct out *o, unsigned number,
			void (*fill)(struct out *o, const void *arg), const void *arg)
{
	struct out count = {0};

	fill(&count, arg);
	put_tag(o, number, LR_CRIU_WIRE_BYTES);
	put_varint(o, count.n);
	fill(o, arg);
}

static void fill_fd(struct out *o, const void *arg)
{
	const struct lr_criu_pair *p = arg;

	put_string(o, 1, p->key);
	put_int(o, 2, p->fd);
}

static void fill_root(struct out *o, const void *arg)
{
	const struct lr_criu_pair *p = arg;

	put_string(o, 1, p->key);
	put_string(o, 2, p->value);
}

static void fill_page_server(struct out *o, const void *arg)
{
	const struct lr_criu_opts *opts = arg;

	put_string(o, 1, opts->page_server);
	if (opts->page_server_port >= 0)
		put_int(o, 2, opts->page_server_port);
}

static void put_list(struct out *o, const struct field *f, const struct lr_criu_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (f->kind == KEYS)
			put_string(o, f->number, l->v[i].key);
		else
			put_message(o, f->number, f->kind == FDS ? fill_fd : fill_root, &l->v[i]);
}

static void fill_opts(struct out *o, const void *arg)
{
	const struct lr_criu_opts *opts = arg;

	for (size_t i = 0; i < LR_ARRAY_SIZE(fields); i++) {
		const struct field *f = &fields[i];
		const void *at = (const char *)opts + f->offset;
		switch (f->kind) {
		case BOOL:
			if (*(const bool *)at)
				put_int(o, f->number, 1);
			break;
		case INT:
			if (*(const int *)at >= 0)
				put_int(o, f->number, *(const int *)at);
			break;
		case STRING:
			put_string(o, f->number, *(const char *const *)at);
			break;
		case PAGE_SERVER:
			if (opts->page_server)
				put_message(o, f->number, fill_page_server, opts);
			break;
		default:
			put_list(o, f, at);
		}
	}
}

static void fill_features(struct out *o, const void *arg)
{
	const struct lr_criu_request *rq = arg;

	if (rq->mem_track)
		put_int(o, 1, 1);
	if (rq->lazy_pages)
		put_int(o, 2, 1);
}

static void fill_request(struct out *o, const struct lr_criu_request *rq)
{
	put_int(o, 1, rq->type);
	if (rq->opts)
		put_message(o, 2, fill_opts, rq->opts);
	if (rq->notify_success)
		put_int(o, 3, 1);
	if (rq->lazy_pages || rq->mem_track)
		put_message(o, 5, fill_features, rq);
}

int lr_criu_encode(const struct lr_criu_request *rq, struct lr_arena *a, uint8_t **ret, size_t *n,
		   struct lr_err *err)
{
	struct out o = {0};

	fill_request(&o, rq);
	size_t size = o.n;
	o = (struct out){.at = lr_alloc(a, size)};
	if (!o.at)
		return lr_fail(err, ENOMEM, "make a request to criu");
	fill_request(&o, rq);
	*ret = o.at;
	*n = size;
	return 0;
}

/* ---- from bytes ---------------------------------------------------------------------------- */

/* Cut to the size, and made fit for an error message. */
static void get_text(const struct lr_criu_in *in, char *buf, size_t size)
{
	size_t n = in->at ? (size_t)(in->end - in->at) : 0;

	if (n >= size)
		n = size - 1;
	for (size_t i = 0; i < n; i++)
		buf[i] = in->at[i] >= ' ' && in->at[i] < 0x7f ? (char)in->at[i] : ' ';
	buf[n] = '\0';
}

static int get_notify(struct lr_criu_in in, struct lr_criu_response *ret)
{
	struct lr_criu_field p;
	int r;

	while ((r = lr_criu_next(&in, &p)) > 0)
		if (p.number == 1)
			get_text(&p.bytes, ret->script, sizeof(ret->script));
		else if (p.number == 2)
			ret->pid = (pid_t)(int32_t)p.value;
	return r;
}

static int get_restored(struct lr_criu_in in, struct lr_criu_response *ret)
{
	struct lr_criu_field p;
	int r;

	while ((r = lr_criu_next(&in, &p)) > 0)
		if (p.number == 1)
			ret->pid = (pid_t)(int32_t)p.value;
	return r;
}

static int get_features(struct lr_criu_in in, struct lr_criu_response *ret)
{
	struct lr_criu_field p;
	int r;

	while ((r = lr_criu_next(&in, &p)) > 0)
		if (p.number == 1)
			ret->mem_track = p.value != 0;
		else if (p.number == 2)
			ret->lazy_pages = p.value != 0;
	return r;
}

static int get_version(struct lr_criu_in in, struct lr_criu_response *ret)
{
	unsigned major = 0, minor = 0, sub = 0;
	bool git = false;
	struct lr_criu_field p;
	int r;

	while ((r = lr_criu_next(&in, &p)) > 0) {
		unsigned v = p.value > 9999 ? 9999 : (unsigned)p.value;
		if (p.number == 1)
			major = v;
		else if (p.number == 2)
			minor = v;
		else if (p.number == 3)
			git = true;
		else if (p.number == 4)
			sub = v;
	}
	/* Built from a checkout, it is on its way to the next version. */
	ret->version = (int)(major * 10000 + (minor + git) * 100 + (git ? 0 : sub));
	return r;
}

static int get_field(const struct lr_criu_field *p, struct lr_criu_response *ret)
{
	switch (p->number) {
	case 1:
		ret->type = (enum lr_criu_type)(p->value > 99 ? 99 : p->value);
		return 1;
	case 2:
		ret->success = p->value != 0;
		return 1;
	case 4:
		return get_restored(p->bytes, ret);
	case 5:
		return get_notify(p->bytes, ret);
	case 7:
		ret->error = (int)(int32_t)p->value;
		return 1;
	case 8:
		return get_features(p->bytes, ret);
	case 9:
		get_text(&p->bytes, ret->message, sizeof(ret->message));
		return 1;
	case 10:
		return get_version(p->bytes, ret);
	default:
		return 1; /* a later version's */
	}
}

int lr_criu_decode(const uint8_t *bytes, size_t n, struct lr_criu_response *ret, struct lr_err *err)
{
	struct lr_criu_in in = {bytes, bytes + n};
	struct lr_criu_field p;
	int r;

	*ret = (struct lr_criu_response){0};
	while ((r = lr_criu_next(&in, &p)) > 0 && get_field(&p, ret) >= 0)
		;
	return r != 0 || !n
		       ? lr_refuse(err, EBADMSG, "criu answers in a way that is not understood")
		       : 0;
}
