/* SPDX-License-Identifier: Apache-2.0 */
/* seed: see check.h. One function a section; what it refuses it names by table and index. */
#define LR_ROOM "seed"
#include "src/seed/check.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/seed/socket.h"

#define BAD SEED_BAD

static bool aligned(uint64_t n)
{
	return n % LR_SEED_PAGE == 0;
}

static int check_host(const struct lr_seed *s, struct lr_err *err)
{
	if (lr_seed_count(s, LR_SEED_HOST) != 1)
		return lr_refuse(err, EPROTO, "the seed does not say what machine it is of");
	const struct lr_seed_host *h = lr_seed_host(s, 0);
	if (h->page != LR_SEED_PAGE || h->xsave > LR_SEED_XSAVE || !aligned(h->vdso) ||
	    !aligned(h->vvar) || h->vdso > 1U << 20 || h->vvar > 1U << 20)
		return BAD("host", 0, "is garbled");
	return 0;
}

static int check_fds(const struct lr_seed *s, const struct lr_seed_process *p, struct lr_err *err)
{
	for (uint32_t i = 0; i < p->fds.count; i++) {
		const struct lr_seed_fd *fd = lr_seed_fd(s, p->fds.first + i);
		if (fd->number > INT32_MAX)
			return BAD("fds", p->fds.first + i, "has no number");
		if (i && fd->number <= lr_seed_fd(s, p->fds.first + i - 1)->number)
			return BAD("fds", p->fds.first + i, "is out of order");
	}
	return 0;
}

static int check_process(const struct lr_seed *s, uint32_t i, struct lr_err *err)
{
	const struct lr_seed_process *p = lr_seed_process(s, i);
	bool zombie = p->flags & LR_SEED_ZOMBIE;

	if (!p->pid || p->pid >= LR_SEED_PIDS || p->pgid >= LR_SEED_PIDS ||
	    p->sid >= LR_SEED_PIDS || p->flags & ~(LR_SEED_ZOMBIE | LR_SEED_TILES))
		return BAD("processes", i, "has impossible ids");
	/* So there is one root, and no circle. */
	if (i ? p->parent >= i : p->parent != LR_SEED_NONE)
		return BAD("processes", i, "comes before its parent");
	/* Whose parent has died has another one. A dead process makes no children: these would be
	 * waited for, for ever. */
	if (i && lr_seed_process(s, p->parent)->flags & LR_SEED_ZOMBIE)
		return BAD("processes", i, "has a parent that is dead");
	if (zombie)
		return p->threads.count || p->fds.count || p->mm != LR_SEED_NONE
			       ? BAD("processes", i, "is dead, and has threads")
			       : 0;
	if (!p->threads.count || p->mm == LR_SEED_NONE || p->fs == LR_SEED_NONE)
		return BAD("processes", i, "has no thread or no memory");
	if (lr_seed_thread(s, p->threads.first)->tid != p->pid)
		return BAD("processes", i, "does not begin with its leader");
	if (p->limits.count > 64)
		return BAD("processes", i, "has too many limits");
	return check_fds(s, p, err);
}

/* How an XSAVE area begins, in bytes: the area of FXSAVE, then a header. */
enum { FXSAVE = 512, XSAVE_HEADER = 64 };

/* The header: what is in use is of the host's, and nothing else is said there, as of a compact form. */
static bool xsave_is_plain(const struct lr_seed *s, const struct lr_seed_thread *t)
{
	uint64_t header[XSAVE_HEADER / sizeof(uint64_t)];

	memcpy(header, (const uint8_t *)lr_seed_data(s, &t->xsave) + FXSAVE, sizeof(header));
	for (size_t i = 1; i < LR_ARRAY_SIZE(header); i++)
		if (header[i])
			return false;
	return !(header[0] & ~lr_seed_host(s, 0)->xfeatures);
}

static int check_thread(const struct lr_seed *s, uint32_t i, struct lr_err *err)
{
	const struct lr_seed_thread *t = lr_seed_thread(s, i);

	if (!t->tid || t->tid >= LR_SEED_PIDS)
		return BAD("threads", i, "has an impossible id");
	/* Not more than the machine had. */
	if (t->xsave.length < FXSAVE + XSAVE_HEADER || t->xsave.length > lr_seed_host(s, 0)->xsave)
		return BAD("threads", i, "has no XSAVE area");
	if (!xsave_is_plain(s, t))
		return BAD("threads", i, "has an XSAVE area of another form");
	if (t->regs[LR_SEED_RIP] >= LR_SEED_TOP || t->regs[LR_SEED_FS_BASE] >= LR_SEED_TOP ||
	    t->regs[LR_SEED_GS_BASE] >= LR_SEED_TOP)
		return BAD("threads", i, "has registers that no program can have");
	if (t->mce_kill > 2 || t->speculation >> (8 * LR_SEED_SPECULATIONS))
		return BAD("threads", i, "is garbled");
	return 0;
}

static bool vma_kind_fits(const struct lr_seed_vma *v)
{
	bool file = v->backing != LR_SEED_NONE, object = v->object != LR_SEED_NONE;

	switch (v->kind) {
	case LR_SEED_PRIVATE:
	case LR_SEED_SHARED:
		return file && !object;
	case LR_SEED_SHARES:
	case LR_SEED_COPY:
		return object && !file;
	case LR_SEED_ANON:
	case LR_SEED_VDSO:
	case LR_SEED_VVAR:
		return !file && !object;
	default:
		return false;
	}
}

static int check_vma(const struct lr_seed *s, uint64_t i, uint64_t lowest, struct lr_err *err)
{
	const struct lr_seed_vma *v = lr_seed_vma(s, i);

	if (!aligned(v->start) || !aligned(v->end) || !aligned(v->offset) || v->start >= v->end ||
	    v->end > LR_SEED_TOP || v->offset > INT64_MAX - LR_SEED_TOP)
		return BAD("vmas", i, "has impossible addresses");
	if (v->start < lowest)
		return BAD("vmas", i, "overlaps, or is out of order");
	if (v->prot & ~(uint32_t)(PROT_READ | PROT_WRITE | PROT_EXEC) ||
	    v->flags & ~LR_SEED_VMA_FLAGS)
		return BAD("vmas", i, "has unknown flags");
	if (!vma_kind_fits(v))
		return BAD("vmas", i, "is of an unknown kind, or not backed by what it should be");
	if (v->kind == LR_SEED_SHARES && v->prot & PROT_WRITE &&
	    lr_seed_object(s, v->object)->seals & LR_SEED_SEAL_WRITE)
		return BAD("vmas", i, "may write to what is sealed");
	return 0;
}

static bool keeps_pages(const struct lr_seed_vma *v)
{
	return v->kind == LR_SEED_ANON || v->kind == LR_SEED_PRIVATE || v->kind == LR_SEED_COPY;
}

int seed_check_run(const struct lr_seed *s, uint64_t i, uint64_t lowest, uint64_t *at,
		   struct lr_err *err)
{
	const struct lr_seed_run *r = lr_seed_run(s, i);

	if (!aligned(r->start) || !r->pages || r->start > LR_SEED_TOP ||
	    r->pages > (LR_SEED_TOP - r->start) / LR_SEED_PAGE || r->start < lowest)
		return BAD("runs", i, "has impossible addresses");
	if (!aligned(r->at) || r->at < *at || r->at > s->header->pages ||
	    r->pages > (s->header->pages - r->at) / LR_SEED_PAGE)
		return BAD("runs", i, "is not in the file of pages");
	*at = r->at + r->pages * LR_SEED_PAGE;
	return 0;
}

static uint64_t run_end(const struct lr_seed_run *r)
{
	return r->start + r->pages * LR_SEED_PAGE;
}

static int check_mm(const struct lr_seed *s, uint32_t i, uint64_t *at, struct lr_err *err)
{
	const struct lr_seed_mm *m = lr_seed_mm(s, i);
	const uint64_t places[] = {m->start_code, m->end_code,  m->start_data,  m->end_data,
				   m->start_brk,  m->brk,       m->start_stack, m->arg_start,
				   m->arg_end,    m->env_start, m->env_end};
	uint64_t end = 0, v = m->vmas.first, last = v + m->vmas.count;

	for (size_t k = 0; k < LR_ARRAY_SIZE(places); k++)
		if (places[k] > LR_SEED_TOP)
			return BAD("mms", i, "has impossible addresses");
	/* Without one, it would be the resuming program's. */
	if (!m->auxv.length || m->auxv.length % 16 || m->auxv.length > 8 * LR_SEED_PAGE)
		return BAD("mms", i, "has no auxiliary vector");
	if (m->flags & ~LR_SEED_MM_FLAGS || m->keys & ~LR_SEED_KEYS)
		return BAD("mms", i, "has unknown flags");
	for (uint64_t k = v; k < last; k++) {
		int r = check_vma(s, k, end, err);
		if (r < 0)
			return r;
		end = lr_seed_vma(s, k)->end;
	}
	end = 0;
	for (uint64_t k = m->runs.first; k < m->runs.first + (uint64_t)m->runs.count; k++) {
		int r = seed_check_run(s, k, end, at, err);
		if (r < 0)
			return r;
		const struct lr_seed_run *run = lr_seed_run(s, k);
		end = run_end(run);
		while (v < last && lr_seed_vma(s, v)->end <= run->start)
			v++;
		if (v == last || lr_seed_vma(s, v)->start > run->start ||
		    lr_seed_vma(s, v)->end < end || !keeps_pages(lr_seed_vma(s, v)))
			return BAD("runs", k, "is not within private memory");
	}
	return 0;
}

int seed_check_runs(const struct lr_seed *s, const struct lr_seed_range *runs, uint64_t size,
		    uint64_t *at, struct lr_err *err)
{
	uint64_t end = 0, room = (size + LR_SEED_PAGE - 1) & ~(uint64_t)(LR_SEED_PAGE - 1);

	for (uint64_t k = runs->first; k < runs->first + (uint64_t)runs->count; k++) {
		int r = seed_check_run(s, k, end, at, err);
		if (r < 0)
			return r;
		end = run_end(lr_seed_run(s, k));
		if (end > room)
			return BAD("runs", k, "is behind the end of its object");
	}
	return 0;
}

static int check_object(const struct lr_seed *s, uint32_t i, uint64_t *at, struct lr_err *err)
{
	const struct lr_seed_object *o = lr_seed_object(s, i);

	if ((o->kind != LR_SEED_MEMFD && o->kind != LR_SEED_SHARED_ANON) || o->size > LR_SEED_TOP)
		return BAD("objects", i, "is of an unknown kind or size");
	if (o->seals & ~LR_SEED_SEALS)
		return BAD("objects", i, "has unknown seals");
	return seed_check_runs(s, &o->runs, o->size, at, err);
}

/* Of memory: a mode without bits that would lend anybody anything. */
static bool owner_fits(const struct lr_seed_file *f)
{
	return f->kind != LR_SEED_MEMFD_FILE ||
	       (f->args[0] <= 1 && f->args[1] <= 0777 && f->args[2] < UINT32_MAX &&
		f->args[3] < UINT32_MAX);
}

static int check_file(const struct lr_seed *s, uint32_t i, struct lr_err *err)
{
	const struct lr_seed_file *f = lr_seed_file(s, i);
	bool channel = f->kind == LR_SEED_PIPE || f->kind == LR_SEED_SOCKET;

	if (f->kind < LR_SEED_REGULAR || f->kind > LR_SEED_PIDFD)
		return BAD("files", i, "is of an unknown kind");
	if (channel != (f->channel != LR_SEED_NONE) ||
	    (f->kind == LR_SEED_MEMFD_FILE) != (f->object != LR_SEED_NONE) ||
	    (f->kind == LR_SEED_TERMINAL_FILE && !lr_seed_count(s, LR_SEED_TERMINAL)))
		return BAD("files", i, "is without what it stands for");
	if ((f->kind == LR_SEED_STDIO && (f->args[0] > 2 || f->args[1] > 1)) ||
	    (f->kind == LR_SEED_SOCKET && f->args[0] > 1) ||
	    (f->kind == LR_SEED_PIDFD && (!f->args[0] || f->args[0] >= LR_SEED_PIDS)) ||
	    f->pos > INT64_MAX || f->signal > 64 || !owner_fits(f))
		return BAD("files", i, "is garbled");
	return 0;
}

/* Who is in the seed: for each id, a bit for each kind of owner that has it. */
static uint8_t *all_owners(const struct lr_seed *s)
{
	uint8_t *ret = calloc(LR_SEED_PIDS, 1);

	for (uint32_t i = 0; ret && i < lr_seed_count(s, LR_SEED_THREAD); i++)
		ret[lr_seed_thread(s, i)->tid] |= 1U << LR_SEED_OF_THREAD;
	for (uint32_t i = 0; ret && i < lr_seed_count(s, LR_SEED_PROCESS); i++) {
		ret[lr_seed_process(s, i)->pid] |= 1U << LR_SEED_OF_PROCESS;
		ret[lr_seed_process(s, i)->pgid] |= 1U << LR_SEED_OF_GROUP;
	}
	return ret;
}

static bool has_owner(const uint8_t *owners, const struct lr_seed_file *f)
{
	return f->owner && f->owner < LR_SEED_PIDS && f->owner_kind &&
	       f->owner_kind <= LR_SEED_OF_GROUP && owners[f->owner] >> f->owner_kind & 1;
}

/* One look at each file and each thread: of both, a forged seed may have hundreds of thousands. */
static int check_signals(const struct lr_seed *s, struct lr_err *err)
{
	LR_CLEANUP_FREE uint8_t *owners = NULL;

	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_FILE); i++) {
		const struct lr_seed_file *f = lr_seed_file(s, i);
		const bool owned = f->owner || f->owner_kind;
		if (owned && !owners)
			owners = all_owners(s);
		if (owned && !owners)
			return lr_fail(err, ENOMEM, "find the owners of files");
		if (owned && !has_owner(owners, f))
			return BAD("files", i, "signals to nobody who is there");
	}
	return 0;
}

/* Whoever makes them again needs a call or two for each number. */
static int check_watches(const struct lr_seed *s, struct lr_err *err)
{
	uint64_t numbers = 0;

	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_FILE); i++) {
		const struct lr_seed_file *f = lr_seed_file(s, i);
		uint32_t last = 0;
		for (uint32_t k = 0; f->kind == LR_SEED_INOTIFY && k < f->watches.count; k++) {
			const uint32_t at = f->watches.first + k;
			const struct lr_seed_watch *w = lr_seed_watch(s, at);
			if (w->number <= last)
				return BAD("watches", at, "is out of order");
			if (w->file != LR_SEED_NONE || w->mask & ~LR_SEED_WATCH_MASK ||
			    w->data & ~(uint64_t)S_IFMT || lr_seed_text(s, w->path)[0] != '/')
				return BAD("watches", at, "is garbled");
			last = w->number;
		}
		numbers += last;
		if (numbers > LR_SEED_WATCH_NUMBERS)
			return BAD("files", i, "has watches of too high a number");
	}
	return 0;
}

static bool leads_a_session(const struct lr_seed *s, uint32_t pid)
{
	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_PROCESS); i++) {
		const struct lr_seed_process *p = lr_seed_process(s, i);
		if (p->pid == pid && p->sid == pid && !(p->flags & LR_SEED_ZOMBIE))
			return true;
	}
	return false;
}

static int check_terminal(const struct lr_seed *s, uint32_t i, struct lr_err *err)
{
	const struct lr_seed_terminal *t = lr_seed_terminal(s, i);

	if (i)
		return BAD("terminal", i, "is one more than a container has");
	if (t->session ? !leads_a_session(s, t->session) : t->foreground)
		return BAD("terminal", i, "is of no session");
	if (t->flags & ~(LR_SEED_RELAYED | LR_SEED_EXCLUSIVE) || t->foreground >= LR_SEED_PIDS ||
	    (t->rows | t->columns | t->width | t->height) > UINT16_MAX)
		return BAD("terminal", i, "is garbled");
	return 0;
}

/* Messages: each with its length before it. */
static bool messages_fit(const uint8_t *at, uint64_t n)
{
	while (n >= sizeof(uint32_t)) {
		uint32_t length;
		memcpy(&length, at, sizeof(length));
		n -= sizeof(length);
		if (length > n)
			return false;
		at += sizeof(length) + length;
		n -= length;
	}
	return n == 0;
}

/* The owner of a pipe, with a mode without bits that would lend anybody anything; who made a pair, and what was set
 * of its ends. */
static bool channel_fits(const struct lr_seed_channel *c, uint32_t kind)
{
	if (c->uid == UINT32_MAX || c->gid == UINT32_MAX)
		return false;
	if (kind == LR_SEED_PIPE)
		return c->mode <= 0777 && !c->set[0] && !c->set[1];
	return !c->mode && lr_seed_options_fit(LR_SEED_OF_PAIR, c->set[0], c->options[0]) &&
	       lr_seed_options_fit(LR_SEED_OF_PAIR, c->set[1], c->options[1]);
}

static int check_channels(const struct lr_seed *s, struct lr_err *err)
{
	const uint32_t open = LR_SEED_END(0) | LR_SEED_END(1);
	const uint32_t known = open | LR_SEED_NO_READ(0) | LR_SEED_NO_WRITE(0) |
			       LR_SEED_NO_READ(1) | LR_SEED_NO_WRITE(1);
	/* Each channel is looked at by its files, which are two: or a forged seed's might be without an end. */
	uint64_t left = 2 * s->table[LR_SEED_BYTES].count;

	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_FILE); i++) {
		const struct lr_seed_file *f = lr_seed_file(s, i);
		if (f->channel != LR_SEED_NONE && lr_seed_channel(s, f->channel)->ends &
							  ~(f->kind == LR_SEED_PIPE ? open : known))
			return BAD("channels", f->channel, "has unknown ends");
		if (f->channel == LR_SEED_NONE)
			continue;
		const struct lr_seed_channel *c = lr_seed_channel(s, f->channel);
		if (!channel_fits(c, f->kind))
			return BAD("channels", f->channel, "is garbled");
		if (f->kind != LR_SEED_SOCKET)
			continue;
		if (c->data[0].length + c->data[1].length > left)
			return BAD("channels", f->channel, "has more than two ends");
		left -= c->data[0].length + c->data[1].length;
		for (int k = 0; k < 2; k++)
			if (!messages_fit(lr_seed_data(s, &c->data[k]), c->data[k].length))
				return BAD("channels", f->channel, "has messages without an end");
	}
	return 0;
}

/* Threads have no rights in common: whoever looks at those of each would have no end. */
static int check_creds(const struct lr_seed *s, struct lr_err *err)
{
	uint64_t left = s->table[LR_SEED_BYTES].count;

	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_CRED); i++) {
		uint64_t n = lr_seed_cred(s, i)->groups.length;
		if (n % 4 || n > UINT64_C(65536) * 4)
			return BAD("creds", i, "has too many groups");
	}
	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_THREAD); i++) {
		uint64_t n = lr_seed_cred(s, lr_seed_thread(s, i)->cred)->groups.length;
		if (n > left)
			return BAD("threads", i, "has the groups of another one");
		left -= n;
	}
	return 0;
}

static int check_small(const struct lr_seed *s, struct lr_err *err)
{
	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_ACTION); i++) {
		uint32_t sig = lr_seed_action(s, i)->signal;
		if (sig < 1 || sig > 64 || sig == SIGKILL || sig == SIGSTOP)
			return BAD("actions", i, "is of no signal that can have one");
	}
	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_SIGNAL); i++) {
		int32_t sig; /* the first member of a siginfo_t */
		memcpy(&sig, lr_seed_signal(s, i)->info, sizeof(sig));
		/* Nothing keeps those waiting. */
		if (sig < 1 || sig > 64 || sig == SIGKILL || sig == SIGSTOP)
			return BAD("signals", i, "is none that can wait");
	}
	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_TIMER); i++) {
		const struct lr_seed_timer *t = lr_seed_timer(s, i);
		if (t->id < 0 || t->signal > 64 || t->interval < 0 || t->left < 0)
			return BAD("timers", i, "is garbled");
	}
	return 0;
}

/* Each living process has memory of its own. */
static int check_owners(const struct lr_seed *s, struct lr_err *err)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_PROCESS); i++) {
		const struct lr_seed_process *p = lr_seed_process(s, i);
		if (!(p->flags & LR_SEED_ZOMBIE) && p->mm != next++)
			return BAD("processes", i, "does not have memory of its own");
	}
	return next == lr_seed_count(s, LR_SEED_MM)
		       ? 0
		       : lr_refuse(err, EPROTO, "the seed has memory that belongs to nobody");
}

typedef int entry_check(const struct lr_seed *s, uint32_t i, struct lr_err *err);

static int check_each(const struct lr_seed *s, enum lr_seed_type type, entry_check *check,
		      struct lr_err *err)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, type); i++)
		r = check(s, i, err);
	return r;
}

int lr_seed_check(const struct lr_seed *s, struct lr_err *err)
{
	uint64_t at = LR_SEED_PAGE;
	int r = check_host(s, err);

	if (r >= 0 && !lr_seed_count(s, LR_SEED_PROCESS))
		r = lr_refuse(err, EPROTO, "there is no process in the seed");
	if (r >= 0)
		r = check_each(s, LR_SEED_THREAD, check_thread, err);
	if (r >= 0)
		r = check_each(s, LR_SEED_PROCESS, check_process, err);
	if (r >= 0)
		r = check_owners(s, err);
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, LR_SEED_OBJECT); i++)
		r = check_object(s, i, &at, err);
	/* Their pages come before those of memory, which may be copied later than all else. */
	if (r >= 0)
		r = seed_check_tmpfs(s, &at, err);
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, LR_SEED_MM); i++)
		r = check_mm(s, i, &at, err);
	if (r >= 0)
		r = check_each(s, LR_SEED_FILE, check_file, err);
	if (r >= 0)
		r = check_signals(s, err);
	if (r >= 0)
		r = check_watches(s, err);
	if (r >= 0)
		r = check_each(s, LR_SEED_TERMINAL, check_terminal, err);
	if (r >= 0)
		r = seed_check_endpoints(s, err);
	if (r >= 0)
		r = check_channels(s, err);
	if (r >= 0)
		r = check_creds(s, err);
	return r < 0 ? r : check_small(s, err);
}
