/* SPDX-License-Identifier: Apache-2.0 */
/* capture: what /proc tells of a process and its threads. */
#define LR_ROOM "capture"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/inner.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

/* Most of them are small, and there may be one for each of a million descriptors. */
int cap_read_all(struct lr_arena *a, const char *path, char **ret, size_t *size, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = lr_open(path, O_RDONLY | O_CLOEXEC);
	char first[4096], *text = first;
	size_t room = sizeof(first), n = 0;

	if (fd < 0)
		return lr_fail(err, errno, "open %s", path);
	for (;;) {
		ssize_t got = lr_read_full(fd, text + n, room - n);
		if (got < 0)
			return lr_fail(err, (int)-got, "read %s", path);
		n += (size_t)got;
		if (n < room)
			break;
		char *bigger = lr_alloc(a, room * 4);
		if (!bigger)
			return lr_fail(err, ENOMEM, "read %s", path);
		memcpy(bigger, text, n);
		text = bigger;
		room *= 4;
	}
	if (text == first) {
		text = lr_alloc(a, n + 1);
		if (!text)
			return lr_fail(err, ENOMEM, "read %s", path);
		memcpy(text, first, n);
	}
	text[n] = 0;
	*ret = text;
	*size = n;
	return 0;
}

char *cap_read_link(struct lr_arena *a, const char *path)
{
	char text[4096];
	ssize_t n = readlink(path, text, sizeof(text) - 1);

	if (n < 0)
		return NULL;
	text[n] = 0;
	return lr_strdup(a, text);
}

int cap_stat_at(int dir, const char *path, struct stat *ret, uint64_t *mount)
{
	struct statx x;
	int r = lr_statx(dir, path, AT_STATX_DONT_SYNC | (*path ? 0 : AT_EMPTY_PATH),
			 STATX_BASIC_STATS | STATX_MNT_ID, &x);

	if (r < 0) {
		errno = -r;
		return -1;
	}
	*ret = (struct stat){.st_dev = makedev(x.stx_dev_major, x.stx_dev_minor),
			     .st_ino = x.stx_ino,
			     .st_mode = x.stx_mode,
			     .st_nlink = x.stx_nlink,
			     .st_uid = x.stx_uid,
			     .st_gid = x.stx_gid,
			     .st_size = (off_t)x.stx_size,
			     .st_rdev = makedev(x.stx_rdev_major, x.stx_rdev_minor)};
	*mount = x.stx_mask & STATX_MNT_ID ? x.stx_mnt_id : 0;
	return 0;
}

int cap_stat(const char *path, struct stat *ret)
{
	uint64_t mount;

	return cap_stat_at(AT_FDCWD, path, ret, &mount);
}

int cap_open_again(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return cap_open(path, flags);
}

int cap_open(const char *path, int flags)
{
	return lr_open(path, flags | O_NONBLOCK | O_CLOEXEC);
}

int cap_open_failed(int r, struct lr_err *err)
{
	return r == -EAGAIN ? lr_err_hint(err, "a program has a lease on it (fcntl(2)), and does "
					       "not give that back")
			    : r;
}

/* Where the value of a line "name:<tab>" begins; NULL if there is none. */
static const char *field(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, n) == 0 && line[n] == ':')
			return line + n + 1 + strspn(line + n + 1, "\t ");
	}
	return NULL;
}

static unsigned long long number(const char *text, const char *name, int base)
{
	const char *at = field(text, name);

	return at ? strtoull(at, NULL, base) : 0;
}

static void numbers(const char *text, const char *name, uint32_t ret[4])
{
	const char *at = field(text, name);

	for (int i = 0; at && i < 4; i++) {
		char *end;
		ret[i] = (uint32_t)strtoul(at, &end, 10);
		at = end;
	}
}

static int read_groups(struct cap *c, struct cap_thread *t, const char *text)
{
	const char *at = field(text, "Groups");
	char *end;

	for (; at && *at != '\n'; at = end + strspn(end, " ")) {
		uint32_t gid = (uint32_t)strtoul(at, &end, 10);
		if (end == at)
			break;
		uint32_t *v = lr_grow(c->a, t->groups, t->n_groups, sizeof(*v));
		if (!v)
			return -ENOMEM;
		t->groups = v;
		v[t->n_groups++] = gid;
	}
	return 0;
}

/* The first line of a status, which has a newline in the name as "\n", and a backslash twice. */
static void read_name(const char *text, char ret[LR_SEED_NAME])
{
	static const char begin[] = "Name:\t";
	size_t n = 0;

	for (const char *at = text + sizeof(begin) - 1; *at && *at != '\n' && n < LR_SEED_NAME - 1;
	     at++) {
		const bool escaped = *at == '\\' && at[1] && at[1] != '\n';
		at += escaped;
		ret[n++] = escaped && *at == 'n' ? '\n' : *at;
	}
	ret[n] = 0;
}

/* text: its status, if that is known. */
static int read_thread(struct cap *c, struct cap_process *p, struct cap_thread *t, char *text,
		       struct lr_err *err)
{
	char path[64];
	size_t size;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", p->pid, t->tid);
	if (!text)
		r = cap_read_all(c->a, path, &text, &size, err);
	if (r < 0)
		return r;
	const char *features = field(text, "x86_Thread_features");
	t->shadow_stack = features && lr_has_prefix(features, "shstk");
	t->seccomp = (uint32_t)number(text, "Seccomp", 10);
	t->filters = (uint32_t)number(text, "Seccomp_filters", 10);
	t->seed.tid = lr_inner_of(field(text, "NSpid"), NULL);
	numbers(text, "Uid", t->cred.uids);
	numbers(text, "Gid", t->cred.gids);
	t->cred.inheritable = number(text, "CapInh", 16);
	t->cred.permitted = number(text, "CapPrm", 16);
	t->cred.effective = number(text, "CapEff", 16);
	t->cred.bounding = number(text, "CapBnd", 16);
	t->cred.ambient = number(text, "CapAmb", 16);
	t->cred.no_new_privs = (uint32_t)number(text, "NoNewPrivs", 10);
	if (read_groups(c, t, text) < 0)
		return lr_fail(err, ENOMEM, "read the groups of thread %d", t->tid);
	if (!lr_has_prefix(text, "Name:\t"))
		return lr_refuse(err, EPROTO, "%s has no name", path);
	read_name(text, t->seed.name);
	cap_ids_of_thread(c, p, t);
	return 0;
}

static void refuse_thread(struct cap *c, const struct cap_process *p, const struct cap_thread *t)
{
	const uint32_t known = c->opts->known_filter ? 1 : 0;
	const char *who = t == p->threads ? "" : "a thread with ";

	if (t->seccomp == 1)
		cap_refuse(c, p, "%sstrict mode of seccomp(2)", who);
	if (t->filters > known)
		cap_refuse(c, p, "%sfilters of seccomp(2): %u that its bundle does not have", who,
			   t->filters - known);
	if (t->shadow_stack)
		cap_refuse(c, p, "%sa shadow stack", who);
}

/* Each thread has these for itself. What its leader has, too, is told with that. */
static void refuse_threads(struct cap *c, const struct cap_process *p)
{
	const struct cap_thread *first = p->threads;

	for (size_t i = 0; i < p->n_threads; i++) {
		const struct cap_thread *t = &p->threads[i];
		if (!i || t->seccomp != first->seccomp || t->filters != first->filters ||
		    t->shadow_stack != first->shadow_stack)
			refuse_thread(c, p, t);
	}
}

/* It was killed since its threads were listed. */
static bool others_die(const struct cap_process *p)
{
	for (size_t i = 0; i < p->n_threads; i++)
		if (p->threads[i].tid != p->pid && !lr_proc_dies(p->threads[i].tid))
			return false;
	return true;
}

/* What the status tells that can't be carried. */
static void refuse_status(struct cap *c, const struct cap_process *p, const char *text)
{
	const unsigned long long tracer = number(text, "TracerPid", 10);

	/* By ourselves: it was killed while we held it, and is on its way out. */
	if (tracer && tracer != (unsigned)getpid() && !p->threads[0].held) {
		cap_refuse(c, p, "it is traced by process %llu", tracer);
		/* Who has copied the seed before, and was killed, takes its frozen copies along soon. */
		c->n_passing += lr_proc_dies((pid_t)tracer);
	}
	if (p->seed.flags & LR_SEED_ZOMBIE && p->n_threads > 1) {
		cap_refuse(c, p, "its leader has ended, and other threads have not");
		c->n_passing += others_die(p);
	}
}

enum { CGROUP, IPC, MNT, NET, PID, TIME, USER, UTS, CHILDREN_PID, CHILDREN_TIME, SPACES };

_Static_assert(SPACES == CAP_SPACES, "room for each");

/* As /proc/PID/ns calls them. A child made next may be in others (unshare(2) with CLONE_NEWPID). */
static const struct {
	const char *name;
	unsigned like; /* it is compared with this one; if that is another, it is for children */
} spaces[] = {
	[CGROUP] = {"cgroup", CGROUP},
	[IPC] = {"ipc", IPC},
	[MNT] = {"mnt", MNT},
	[NET] = {"net", NET},
	[PID] = {"pid", PID},
	[TIME] = {"time", TIME},
	[USER] = {"user", USER},
	[UTS] = {"uts", UTS},
	[CHILDREN_PID] = {"pid_for_children", PID},
	[CHILDREN_TIME] = {"time_for_children", TIME},
};

/* NULL: there is no such one, or nobody who has it, or it is refused. "": as long as no child was made in it, it has no
 * name. */
static const char *space_of(struct cap *c, const struct cap_process *p, pid_t tid, unsigned i)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", tid, spaces[i].name);
	const char *its = cap_read_link(c->a, path);
	if (its)
		return its;
	const int code = errno;
	if (code == ESRCH || lr_proc_dies(tid))
		return NULL;
	if (code == ENOENT)
		return spaces[i].like == i ? NULL : "";
	cap_refuse(c, p, "a namespace that can't be looked at: read %s: %s", path,
		   lr_strerror(code));
	return NULL;
}

static void read_spaces(struct cap *c, const struct cap_process *p, pid_t tid,
			const char *ret[CAP_SPACES])
{
	for (unsigned i = 0; i < SPACES; i++)
		ret[i] = space_of(c, p, tid, i);
}

static void refuse_spaces(struct cap *c, const struct cap_process *p, const char *who,
			  const char *const its[CAP_SPACES], const char *const like[CAP_SPACES])
{
	for (unsigned i = 0; i < SPACES; i++) {
		const unsigned k = spaces[i].like;
		if (its[i] && like[k] && !lr_streq(its[i], like[k]))
			cap_refuse(c, p, "%s%s %s namespace %s", who, k == IPC ? "an" : "a",
				   spaces[k].name, i == k ? "of its own" : "for its children");
	}
}

/*
 * Whether it may go to another namespace than its process has. That takes CAP_SYS_ADMIN, which a program that is
 * executed may also get out of these sets. No thread gets it by a user namespace of its own: the kernel makes none for
 * who has other threads, lets nobody who has them into one (unshare(2), setns(2): EINVAL), and makes no thread in
 * another one than its maker's (clone(2)). A process that goes to one is told by its leader.
 */
static bool may_leave(const struct cap_thread *t)
{
	return (t->cred.permitted | t->cred.inheritable | t->cred.bounding) &
	       UINT64_C(1) << CAP_SYS_ADMIN;
}

/* What was seen of their rights while they ran counts later, too: they may have given them up by then. */
static void note_rights(struct cap_before *b, const struct cap_process *p)
{
	for (size_t i = 0; i < p->n_threads; i++)
		b->may_leave = b->may_leave || may_leave(&p->threads[i]);
}

/* Whether it is in the namespaces in which it was looked at: to leave them without CAP_SYS_ADMIN takes a user namespace
 * of one's own, from which nobody comes back. Of a new process nobody knows who has made it, and where. */
static bool has_stayed(struct cap *c, const struct cap_process *p)
{
	const struct cap_before *b = c->before;
	char path[48];

	if (!c->holds || b->may_leave || !b->spaces[USER] || !cap_was_seen(b, p))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", p->pid, spaces[USER].name);
	const char *its = cap_read_link(c->a, path);
	return its && lr_streq(its, b->spaces[USER]);
}

static void note_spaces(struct cap *c, const char *const its[CAP_SPACES])
{
	struct cap_before *b = c->before;

	memcpy(c->spaces, its, sizeof(c->spaces));
	for (unsigned i = 0; !c->holds && i < SPACES; i++)
		b->spaces[i] = its[i] ? lr_strdup(b->a, its[i]) : NULL;
	/* Without memory for one, all are read again. */
	for (unsigned i = 0; i < SPACES; i++)
		if (its[i] && !b->spaces[i])
			b->spaces[USER] = NULL;
}

/* When all are held, namespaces are read again only where somebody may have gone elsewhere since: that takes longer than
 * all the rest that is asked of a thread. */
static void refuse_relations(struct cap *c, const struct cap_process *p)
{
	const char *its[CAP_SPACES], *of_thread[CAP_SPACES];

	if (p->seed.flags & LR_SEED_ZOMBIE)
		return;
	note_rights(c->before, p);
	const bool stayed = has_stayed(c, p);
	if (p == c->p && stayed)
		memcpy(c->spaces, c->before->spaces, sizeof(c->spaces));
	if (p == c->p)
		c->stayed = stayed;
	if (stayed)
		return;
	read_spaces(c, p, p->pid, its);
	if (p == c->p)
		note_spaces(c, its);
	refuse_spaces(c, p, "", its, c->spaces);
	for (size_t i = 0; i < p->n_threads && (!c->holds || c->before->may_leave); i++) {
		if (p->threads[i].tid == p->pid)
			continue;
		read_spaces(c, p, p->threads[i].tid, of_thread);
		refuse_spaces(c, p, "a thread with ", of_thread, its);
	}
}

int cap_proc_look(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	struct lr_proc_stat st;
	char path[40], *text;
	size_t size;

	/* Not that of its number when that was listed, which may have been another process's. */
	p->start_time = lr_proc_stat(p->pid, &st) == 0 ? st.start_time : 0;
	snprintf(path, sizeof(path), "/proc/%d/status", p->pid);
	int r = cap_read_all(c->a, path, &text, &size, err);
	if (r < 0)
		return r;
	const char *state = field(text, "State");
	p->seed.flags = state && (*state == 'Z' || *state == 'X') ? LR_SEED_ZOMBIE : 0;
	p->seed.pid = lr_inner_of(field(text, "NStgid"), NULL);
	p->seed.pgid = lr_inner_of(field(text, "NSpgid"), NULL);
	p->seed.sid = lr_inner_of(field(text, "NSsid"), NULL);
	p->group = (pid_t)number(text, "NSpgid", 10);
	p->umask = (uint32_t)number(text, "Umask", 8);
	p->locks = number(text, "VmLck", 10) > 0;
	p->tables = number(text, "VmPTE", 10) * 1024;
	p->numbers = number(text, "FDSize", 10);
	p->written = number(text, "RssAnon", 10) * 1024;
	p->caught = number(text, "SigCgt", 16) | number(text, "SigIgn", 16);
	/* A process's status is that of its leader. */
	for (size_t i = 0; r >= 0 && i < p->n_threads; i++) {
		r = read_thread(c, p, &p->threads[i], p->threads[i].tid == p->pid ? text : NULL,
				err);
		/* A thread that has ended meanwhile is found out when the rest is held. */
		r = r == -ENOENT ? 0 : r;
	}
	refuse_status(c, p, text);
	refuse_threads(c, p);
	refuse_relations(c, p);
	cap_shares_refuse(c, p);
	return r;
}

static uint64_t nth(char *const *words, size_t n, size_t i)
{
	return i < n ? strtoull(words[i], NULL, 10) : 0;
}

/* proc_pid_stat(5) counts from 1; words[0] is the third. */
#define STAT(i) nth(words, n, (i)-3)

static int read_stat(struct cap *c, struct cap_process *p, pid_t pid, struct lr_err *err)
{
	char path[32], *text, *words[64], *save = NULL;
	size_t size, n = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	int r = cap_read_all(c->a, path, &text, &size, err);
	if (r < 0)
		return r;
	char *at = strrchr(text, ')');
	for (char *w = at ? strtok_r(at + 1, " \n", &save) : NULL; w && n < LR_ARRAY_SIZE(words);
	     w = strtok_r(NULL, " \n", &save))
		words[n++] = w;
	p->mm.start_code = STAT(26);
	p->mm.end_code = STAT(27);
	p->mm.start_stack = STAT(28);
	p->mm.start_data = STAT(45);
	p->mm.end_data = STAT(46);
	p->mm.start_brk = STAT(47);
	p->mm.arg_start = STAT(48);
	p->mm.arg_end = STAT(49);
	p->mm.env_start = STAT(50);
	p->mm.env_end = STAT(51);
	p->seed.status = (uint32_t)STAT(52);
	return 0;
}

/* "ID: 0", "signal: 60/00007fff86e452a8", "notify: signal/pid.2634", "ClockID: 0", and again. */
static int read_timers(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	char path[32], *text, *next;
	struct lr_seed_timer *t = NULL;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/timers", p->pid);
	int r = cap_read_all(c->a, path, &text, &size, err);
	if (r < 0)
		return r;
	for (char *line = text; *line; line = next) {
		unsigned long long value;
		char notify[16], whose[8];
		int a, b;
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = 0;
		if (sscanf(line, "ID: %d", &a) == 1) {
			t = lr_grow(c->a, p->timers, p->n_timers, sizeof(*t));
			if (!t)
				return lr_fail(err, ENOMEM, "list timers");
			p->timers = t;
			t += p->n_timers++;
			*t = (struct lr_seed_timer){.id = a};
		} else if (t && sscanf(line, "signal: %d/%llx", &a, &value) == 2) {
			t->signal = (uint32_t)a;
			t->value_pointer = value;
		} else if (t &&
			   sscanf(line, "notify: %15[a-z]/%7[a-z].%d", notify, whose, &b) == 3) {
			t->notify = lr_streq(notify, "none")     ? 1
				    : lr_streq(notify, "thread") ? 2
								 : 0;
			t->tid = lr_streq(whose, "tid") ? (uint32_t)b : 0;
		} else if (t && sscanf(line, "ClockID: %d", &a) == 1) {
			t->clock = (uint32_t)a;
		}
	}
	return 0;
}

static int read_auxv(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	char path[40], *auxv;

	snprintf(path, sizeof(path), "/proc/%d/auxv", p->twin);
	int r = cap_read_all(c->a, path, &auxv, &p->auxv_size, err);
	p->auxv = auxv;
	return r;
}

static uint64_t limit(const char **at)
{
	char *end;

	*at += strspn(*at, " ");
	if (lr_has_prefix(*at, "unlimited")) {
		*at += strlen("unlimited");
		return UINT64_MAX;
	}
	uint64_t v = strtoull(*at, &end, 10);
	*at = end;
	return v;
}

/* Below a headline, a line each, by number: a name in 25 columns, soft, hard. prlimit(2) would ask
 * for CAP_SYS_RESOURCE where the process is another user's. */
static int read_limits(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	const size_t column = 26;
	char path[32], *text;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/limits", p->twin);
	int r = cap_read_all(c->a, path, &text, &size, err);
	if (r < 0)
		return r;
	const char *line = strchr(text, '\n');
	for (size_t i = 0; i < LR_ARRAY_SIZE(p->limits); i++, line = strchr(line, '\n')) {
		if (!line || strlen(++line) <= column)
			return lr_refuse(err, EPROTO, "%s has no limit %zu", path, i);
		const char *at = line + column;
		p->limits[i].soft = limit(&at);
		p->limits[i].hard = limit(&at);
	}
	return 0;
}

static int read_oom_score(struct cap_process *p, struct lr_err *err)
{
	char path[40], text[16];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", p->pid);
	int r = lr_read_file_at(AT_FDCWD, path, text, sizeof(text));
	if (r < 0)
		return lr_fail(err, -r, "read %s", path);
	p->seed.oom_score_adj = atoi(text);
	return 0;
}

int cap_proc_take(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	if (p->seed.flags & LR_SEED_ZOMBIE)
		return read_stat(c, p, p->pid, err);
	int r = read_oom_score(p, err);
	return r < 0 ? r : read_timers(c, p, err);
}

int cap_proc_take_twin(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	char path[40], *text;
	size_t size;

	int r = read_stat(c, p, p->twin, err);
	if (r >= 0)
		r = read_auxv(c, p, err);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/personality", p->twin);
	r = cap_read_all(c->a, path, &text, &size, err);
	if (r < 0)
		return r;
	p->seed.personality = (uint32_t)strtoul(text, NULL, 16);
	return read_limits(c, p, err);
}
