/* SPDX-License-Identifier: Apache-2.0 */
/* cli: seed list, children, inspect, extend, rm. */
#define LR_ROOM "seed"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/base/json.h"
#include "src/base/str.h"
#include "src/checkpoint/checkpoint.h"
#include "src/cli/buf.h"
#include "src/cli/commands.h"
#include "src/cli/runtime.h"
#include "src/forkctl/forkctl.h"

static const char *socket_of(const struct lr_cli_args *args)
{
	const char *path = lr_cli_str(args, LR_OPT_FORKD);

	return path ? path : LR_FORKCTL_SOCKET;
}

static bool is_id(const char *text, uint8_t id[LR_WIRE_ID])
{
	return lr_wire_id_of(text, strlen(text), id) == 0;
}

static int id_of(const char *text, uint8_t id[LR_WIRE_ID], struct lr_err *err)
{
	if (is_id(text, id))
		return 0;
	lr_refuse(err, EINVAL, "\"%s\" is no seed's id", text);
	return lr_err_hint(err, "it has %d hexadecimal digits, as `seed list` shows it",
			   2 * LR_WIRE_ID);
}

/* ---- what the daemon holds ------------------------------------------------------------------- */

struct rows {
	struct lr_cli_buf *out;
	struct lr_json_writer *json; /* NULL: a table */
};

static const char *state_of(const struct lr_wire_seed *s)
{
	return s->ended ? lr_wire_code_name(s->ended) : s->missing ? "filling" : "held";
}

static void put_json(struct lr_json_writer *w, const struct lr_wire_seed *s)
{
	char id[LR_WIRE_HEX];

	lr_wire_id_text(s->id, id);
	lr_json_obj_open(w);
	lr_json_kstr(w, "id", id);
	lr_json_kstr(w, "state", state_of(s));
	lr_json_kuint(w, "leaseMs", s->lease);
	lr_json_kuint(w, "users", s->users);
	lr_json_kuint(w, "descriptorBytes", s->length);
	lr_json_kuint(w, "pagesBytes", s->pages);
	lr_json_kuint(w, "missingBytes", s->missing);
	lr_json_kuint(w, "sentBytes", s->sent);
	lr_json_obj_close(w);
}

static void put_row(const struct rows *x, const struct lr_wire_seed *s)
{
	char id[LR_WIRE_HEX];

	if (x->json) {
		put_json(x->json, s);
		return;
	}
	lr_wire_id_text(s->id, id);
	lr_cli_put(x->out, "%-34s%-12s%-12" PRIu64 "%-8" PRIu32 "%-16" PRIu64 "%" PRIu64 "\n", id,
		   state_of(s), s->lease / 1000, s->users, s->length + s->pages, s->sent);
}

/* A message holds some of them. */
static int each(int sock, const uint8_t *id, const struct rows *x, struct lr_err *err)
{
	struct lr_wire_msg m = {.count = 1};

	for (uint32_t at = 0; at < m.count; at += (uint32_t)m.n) {
		int r = lr_forkctl_list(sock, id, at, &m, err);
		if (r < 0)
			return r;
		for (size_t i = 0; i < m.n; i++)
			put_row(x, &m.seeds[i]);
		if (!m.n)
			break;
	}
	return 0;
}

static int put_text(struct lr_cli_buf *out, const char *text, struct lr_err *err)
{
	if (!text)
		return lr_fail(err, ENOMEM, "write the answer");
	lr_cli_put(out, "%s\n", text);
	return lr_cli_flush(out, err);
}

static int list(int sock, const struct lr_cli_args *args, struct lr_arena *a, struct lr_err *err)
{
	LR_CLEANUP_BUF struct lr_cli_buf out = {0};
	const char *format = lr_cli_str(args, LR_OPT_FORMAT);
	bool json = format && lr_streq(format, "json");
	struct rows x = {.out = &out, .json = json ? lr_json_writer_new(a, true) : NULL};

	if (json)
		lr_json_list_open(x.json);
	else
		lr_cli_put(&out, "%-34s%-12s%-12s%-8s%-16s%s\n", "ID", "STATE", "LEASE (S)",
			   "USERS", "BYTES", "SENT");
	int r = each(sock, NULL, &x, err);
	if (r < 0)
		return r;
	if (!json)
		return lr_cli_flush(&out, err);
	lr_json_list_close(x.json);
	return put_text(&out, lr_json_finish(x.json, NULL), err);
}

static int inspect_held(int sock, const uint8_t id[LR_WIRE_ID], struct lr_arena *a,
			struct lr_err *err)
{
	LR_CLEANUP_BUF struct lr_cli_buf out = {0};
	const struct rows x = {.out = &out, .json = lr_json_writer_new(a, true)};
	int r = each(sock, id, &x, err);

	return r < 0 ? r : put_text(&out, lr_json_finish(x.json, NULL), err);
}

/* ---- whose memory comes by it ---------------------------------------------------------------- */

static const char *const states[LR_WIRE_STATES] = {"coming", "over", "killed"};

static uint64_t bytes_of(const struct lr_wire_child *c)
{
	return (c->v[LR_WIRE_CACHED] + c->v[LR_WIRE_BY_TCP] + c->v[LR_WIRE_BY_RDMA]) * LR_WIRE_PAGE;
}

static void put_child_json(struct lr_json_writer *w, const struct lr_wire_child *c)
{
	static const struct {
		enum lr_wire_figure figure;
		const char *name;
	} names[] = {
		{LR_WIRE_FAULTS, "faults"},    {LR_WIRE_ASKED, "askedPages"},
		{LR_WIRE_AHEAD, "aheadPages"}, {LR_WIRE_PREFETCHED, "prefetchedPages"},
		{LR_WIRE_ZEROS, "zeroPages"},  {LR_WIRE_CACHED, "cachePages"},
		{LR_WIRE_BY_TCP, "tcpPages"},  {LR_WIRE_BY_RDMA, "rdmaPages"},
	};
	char id[LR_WIRE_HEX];

	lr_wire_id_text(c->id, id);
	lr_json_obj_open(w);
	lr_json_kint(w, "pid", c->pid);
	lr_json_kstr(w, "seed", id);
	lr_json_kstr(w, "state", states[c->state]);
	for (size_t i = 0; i < LR_ARRAY_SIZE(names); i++)
		lr_json_kuint(w, names[i].name, c->v[names[i].figure]);
	lr_json_kuint(w, "bytes", bytes_of(c));
	if (c->v[LR_WIRE_TIMES]) {
		lr_json_key(w, "faultNs");
		lr_json_obj_open(w);
		lr_json_kuint(w, "count", c->v[LR_WIRE_TIMES]);
		lr_json_kuint(w, "min", c->v[LR_WIRE_SHORTEST]);
		lr_json_kuint(w, "median", c->v[LR_WIRE_MEDIAN]);
		lr_json_kuint(w, "max", c->v[LR_WIRE_LONGEST]);
		lr_json_obj_close(w);
	}
	lr_json_obj_close(w);
}

static void put_child(const struct rows *x, const struct lr_wire_child *c)
{
	char id[LR_WIRE_HEX];

	if (x->json) {
		put_child_json(x->json, c);
		return;
	}
	lr_wire_id_text(c->id, id);
	lr_cli_put(x->out, "%-10" PRIu32 "%-34s%-8s%-12" PRIu64 "%-16" PRIu64 "%" PRIu64 "\n",
		   c->pid, id, states[c->state], c->v[LR_WIRE_FAULTS], bytes_of(c),
		   c->v[LR_WIRE_MEDIAN] / 1000);
}

static int children(int sock, const struct lr_cli_args *args, struct lr_arena *a,
		    struct lr_err *err)
{
	LR_CLEANUP_BUF struct lr_cli_buf out = {0};
	const char *format = lr_cli_str(args, LR_OPT_FORMAT);
	const bool json = format && lr_streq(format, "json");
	const struct rows x = {.out = &out, .json = json ? lr_json_writer_new(a, true) : NULL};
	struct lr_wire_msg m = {.count = 1};

	if (json)
		lr_json_list_open(x.json);
	else
		lr_cli_put(&out, "%-10s%-34s%-8s%-12s%-16s%s\n", "PID", "SEED", "STATE", "FAULTS",
			   "BYTES", "MEDIAN (US)");
	for (uint32_t at = 0; at < m.count; at += (uint32_t)m.n) {
		int r = lr_forkctl_children(sock, at, &m, err);
		if (r < 0)
			return r;
		for (size_t i = 0; i < m.n; i++)
			put_child(&x, &m.children[i]);
		if (!m.n)
			break;
	}
	if (!json)
		return lr_cli_flush(&out, err);
	lr_json_list_close(x.json);
	return put_text(&out, lr_json_finish(x.json, NULL), err);
}

/* ---- what is in a seed ----------------------------------------------------------------------- */

static bool is_ticket(const char *what)
{
	const char *rest;

	return lr_has_prefix(what, LR_TICKET_PREFIX) ||
	       lr_ticket_place(what, &rest) != LR_TICKET_HERE;
}

static int inspect_contents(const struct lr_cli_args *args, const char *what, struct lr_arena *a,
			    struct lr_err *err)
{
	LR_CLEANUP_BUF struct lr_cli_buf out = {0};
	const struct lr_checkpoint_engine *engine = NULL;
	const struct lr_checkpoint_opts o = {
		.engine = "fork",
		.status_fd = LR_NOFD,
		.forkd = lr_cli_str(args, LR_OPT_FORKD),
		.image_path = is_ticket(what) ? NULL : what,
		.ticket_from = is_ticket(what) ? what : NULL,
	};
	struct lr_init_seed s = LR_INIT_SEED_NONE;

	int r = lr_checkpoint_engine(o.engine, &engine, err);
	if (r >= 0)
		r = engine->open(&o, a, &s, err);
	if (r >= 0)
		r = put_text(&out, lr_seed_dump(&s.seed, a), err);
	lr_init_seed_close(&s);
	return r;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int inspect(const struct lr_cli_args *args, const char *what, struct lr_arena *a,
		   struct lr_err *err)
{
	uint8_t id[LR_WIRE_ID];

	if (!is_id(what, id))
		return inspect_contents(args, what, a, err);
	LR_CLEANUP_FD int sock = lr_forkctl_connect(socket_of(args), err);
	return sock < 0 ? sock : inspect_held(sock, id, a, err);
}

static int change(const struct lr_cli_args *args, const char *what, bool extend, struct lr_err *err)
{
	uint8_t id[LR_WIRE_ID];

	int r = id_of(what, id, err);
	if (r < 0)
		return r;
	LR_CLEANUP_FD int sock = lr_forkctl_connect(socket_of(args), err);
	if (sock < 0)
		return sock;
	return extend ? lr_forkctl_extend(sock, id, (uint64_t)lr_cli_num(args, LR_OPT_LEASE, 0),
					  err)
		      : lr_forkctl_remove(sock, id, err);
}

static int list_all(const struct lr_cli_args *args, bool seeds, struct lr_arena *a,
		    struct lr_err *err)
{
	LR_CLEANUP_FD int sock = lr_forkctl_connect(socket_of(args), err);

	if (sock < 0)
		return sock;
	return seeds ? list(sock, args, a, err) : children(sock, args, a, err);
}

int lr_cmd_seed(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const char *verb = args->operands[0];
	const char *what = args->n_operands > 1 ? args->operands[1] : NULL;

	if (!a)
		return lr_fail(err, ENOMEM, "seed");
	if ((lr_streq(verb, "list") || lr_streq(verb, "children")) && !what)
		return list_all(args, lr_streq(verb, "list"), a, err);
	if (lr_streq(verb, "inspect") && what)
		return inspect(args, what, a, err);
	if ((lr_streq(verb, "extend") || lr_streq(verb, "rm")) && what)
		return change(args, what, lr_streq(verb, "extend"), err);
	lr_refuse(err, EINVAL, "unknown command \"%s%s\"", verb, what ? " SEED" : "");
	return lr_err_hint(err, "list, children, inspect SEED, extend ID or rm ID");
}
