/* SPDX-License-Identifier: Apache-2.0 */
/* liblean: a bundle read once and started often; see template.h. */
#define LR_ROOM "template"
#include "src/liblean/template.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/liblean/instance.h"
#include "src/lifecycle/hide.h"
#include "src/sys/selfexe.h"

/* Deep enough for the stages, which keep a few paths (4 kB each) and errors (1 kB) on it. */
#define STACK_SIZE (128u << 10)
#define GUARD_SIZE (64u << 10) /* a page, whatever its size is here */

/* One for each birth that goes on at the same time; the mapping starts with the guard. */
struct lr_stack {
	struct lr_stack *next;
	void *base;
};

/* ---- stacks -------------------------------------------------------------------------------- */

static struct lr_stack *make_stack(void)
{
	struct lr_stack *s = malloc(sizeof(*s));

	if (!s)
		return NULL;
	s->base = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (s->base == MAP_FAILED || mprotect(s->base, GUARD_SIZE, PROT_NONE) < 0) {
		if (s->base != MAP_FAILED)
			munmap(s->base, GUARD_SIZE + STACK_SIZE);
		free(s);
		return NULL;
	}
	return s;
}

struct lr_stack *lr_template_stack(struct lr_template *t, struct lr_given *g)
{
	pthread_mutex_lock(&t->lock);
	struct lr_stack *s = t->stacks;
	if (s)
		t->stacks = s->next;
	pthread_mutex_unlock(&t->lock);
	if (!s)
		s = make_stack();
	if (s) {
		g->stack = (char *)s->base + GUARD_SIZE;
		g->stack_size = STACK_SIZE;
	}
	return s;
}

void lr_template_stack_back(struct lr_template *t, struct lr_stack *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&t->lock);
	s->next = t->stacks;
	t->stacks = s;
	pthread_mutex_unlock(&t->lock);
}

/* ---- open and close ------------------------------------------------------------------------ */

void lr_template_hold(struct lr_template *t)
{
	atomic_fetch_add(&t->users, 1);
}

void lr_template_close(struct lr_template *t)
{
	if (!t || atomic_fetch_sub(&t->users, 1) > 1)
		return;
	for (struct lr_stack *s = t->stacks, *next; s; s = next) {
		next = s->next;
		munmap(s->base, GUARD_SIZE + STACK_SIZE);
		free(s);
	}
	lr_store_close(&t->store);
	lr_close(t->given.stub);
	lr_close(t->null);
	pthread_mutex_destroy(&t->lock);
	lr_arena_free(t->arena);
	free(t);
}

/* Only what a container of a caller that stays can have. */
static int check(const struct oci_config *c, struct lr_err *err)
{
	const struct oci_hooks *h = c->hooks;

	if (c->process->terminal) {
		lr_refuse(err, EOPNOTSUPP, "a template has no terminal");
		return lr_err_at(err, "process.terminal");
	}
	if (h && (h->create_container.n || h->start_container.n)) {
		lr_refuse(err, EOPNOTSUPP,
			  "hooks that run in the container need a process of their own");
		lr_err_hint(err, "start it by the program lean-runtime");
		return lr_err_at(err, "hooks.%s",
				 h->create_container.n ? "createContainer" : "startContainer");
	}
	if (c->linux_)
		for (size_t i = 0; i < c->linux_->namespaces.n; i++)
			if (lr_streq(c->linux_->namespaces.v[i].type, "time")) {
				lr_refuse(err, EOPNOTSUPP,
					  "a program with threads cannot make time namespaces");
				return lr_err_at(err, "linux.namespaces[%zu]", i);
			}
	return 0;
}

static int read_config(struct lr_template *t, const struct lr_template_opts *o, struct lr_err *err)
{
	struct lr_create_opts bundle = {.bundle = o->bundle ? o->bundle : o->rootfs};
	struct oci_config *own = lr_new(t->arena, struct oci_config);
	struct oci_root *root = lr_new(t->arena, struct oci_root);
	const struct oci_config *c = NULL;
	char *text = NULL;
	int r;

	if (!own || !root)
		return lr_fail(err, ENOMEM, "read the configuration");
	if (o->config) {
		text = lr_strndup(t->arena, o->config, o->config_len);
		r = text ? oci_config_decode(text, o->config_len, t->arena, &c, err)
			 : lr_fail(err, ENOMEM, "read the configuration");
		if (r >= 0)
			r = lr_compile_bundle(&bundle, t->arena, &t->given.bundle, err);
	} else {
		r = lr_compile_read(&bundle, t->arena, &t->given.bundle, &c, err);
	}
	if (r < 0)
		return r;
	*own = *c;
	if (o->rootfs) {
		if (c->root)
			*root = *c->root;
		root->path = realpath(o->rootfs, NULL);
		if (!root->path)
			return lr_fail(err, errno, "root file system %s", o->rootfs);
		char *path = (char *)(size_t)root->path;
		root->path = lr_strdup(t->arena, path);
		free(path);
		if (!root->path)
			return lr_fail(err, ENOMEM, "read the configuration");
		own->root = root;
	}
	t->given.config = own;
	r = lr_compile_check(own, err);
	return r < 0 ? r : check(own, err);
}

/* Everything that is wrong with a config is told now, and what is the same for all containers is
 * kept. */
static int compile(struct lr_template *t, struct lr_err *err)
{
	struct lr_create_opts o = {.id = "template", .given = &t->given};
	struct lr_compiled *c = &t->master;

	int r = lr_compile(&t->rt, &o, t->store.path, t->arena, c, err);
	if (r < 0)
		return r;
	lr_close_hook_outputs(&c->init.hook_opts);
	if (c->seccomp.given) {
		LR_CLEANUP_FD int cache = lr_seccomp_cache_open(t->store.fd);
		r = lr_seccomp_get(&c->seccomp, cache, t->arena, &t->seccomp, err);
		t->given.seccomp = &t->seccomp;
	}
	if (r >= 0 && c->lean.profile.on)
		r = lr_lean_settle(&c->lean, t->arena, err);
	t->given.kept = c->kept;
	t->given.kept_len = c->kept_len;
	t->given.layout = c->layout;
	t->given.master = c;
	return r;
}

static int hide(struct lr_template *t, struct lr_err *err)
{
	const struct lr_hide_caller who = {.library = true, .hidden = lr_selfexe_is_hidden()};
	enum lr_hide how = lr_hide(&who, LR_HIDE_RUN, t->given.config, err);

	if (how == LR_HIDE_REFUSE)
		return -EOPNOTSUPP;
	if (how != LR_HIDE_STUB)
		return 0;
	t->given.stub = lr_init_stub_open(err);
	return t->given.stub < 0 ? t->given.stub : 0;
}

static int open_template(struct lr_template *t, const struct lr_template_opts *o,
			 struct lr_err *err)
{
	t->rt = o->rt;
	t->rt.euid = geteuid();
	t->rt.egid = getegid();
	t->rt.rootless = lr_is_rootless(&t->rt);
	t->rt.root = lr_strdup(t->arena, o->rt.root);
	t->rt.lean = o->rt.lean ? lr_strdup(t->arena, o->rt.lean) : NULL;
	if (!t->rt.root || (o->rt.lean && !t->rt.lean))
		return lr_fail(err, ENOMEM, "open a template");
	t->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (t->null < 0)
		return lr_fail(err, errno, "open /dev/null");
	int r = read_config(t, o, err);
	if (r >= 0)
		r = hide(t, err);
	if (r >= 0)
		r = lr_store_open(t->rt.root, true, t->arena, &t->store, err);
	t->given.store = &t->store;
	return r < 0 ? r : compile(t, err);
}

int lr_template_open(const struct lr_template_opts *o, struct lr_template **ret, struct lr_err *err)
{
	struct lr_template *t = calloc(1, sizeof(*t));

	if (!t)
		return lr_fail(err, ENOMEM, "open a template");
	*t = (struct lr_template){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.users = 1,
		.arena = lr_arena_new(),
		.store.fd = LR_NOFD,
		.null = LR_NOFD,
		.given.stub = LR_NOFD,
	};
	int r = t->arena ? open_template(t, o, err) : lr_fail(err, ENOMEM, "open a template");
	if (r < 0) {
		lr_template_close(t);
		return r;
	}
	*ret = t;
	return 0;
}

int lr_template_warm(struct lr_template *t, unsigned n, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_create_opts o = {.given = &t->given};
	struct lr_compiled c;
	char id[40];

	int r = lr_template_name(id, err);
	if (r < 0 || !t->rt.lean)
		return r;
	/* A name that no container can have. */
	o.id = lr_strf(a, ".%s", id);
	if (!o.id)
		return lr_fail(err, ENOMEM, "warm");
	r = lr_compile(&t->rt, &o, t->store.path, a, &c, err);
	if (r < 0)
		return r;
	r = lr_compile_warm(&t->rt, &o, n, &t->store, a, &c, err);
	lr_close_hook_outputs(&c.init.hook_opts);
	return r;
}

int lr_template_name(char id[40], struct lr_err *err)
{
	uint64_t v[2];

	if (getrandom(v, sizeof(v), 0) != sizeof(v))
		return lr_fail(err, errno, "make a name");
	snprintf(id, 40, "lean-%016llx%08llx", (unsigned long long)v[0],
		 (unsigned long long)v[1] & 0xffffffff);
	return 0;
}
