/* SPDX-License-Identifier: Apache-2.0 */
/* seed: the tables of members; see fields.h. */
#include "src/seed/fields.h"

#include <stddef.h>

#include "src/base/str.h"

#define F(type, kind, member, n)                                                                   \
	{                                                                                          \
#member, offsetof(struct lr_seed_##type, member), n, kind, 0                       \
	}
#define U32(type, member)   F(type, SEED_U32, member, 1)
#define I32(type, member)   F(type, SEED_I32, member, 1)
#define X32(type, member)   F(type, SEED_X32, member, 1)
#define I64(type, member)   F(type, SEED_I64, member, 1)
#define X64(type, member)   F(type, SEED_X64, member, 1)
#define TEXT(type, member)  F(type, SEED_TEXT, member, 1)
#define BYTES(type, member) F(type, SEED_BYTES, member, 1)
#define TO(type, kind, member, OF)                                                                 \
	{                                                                                          \
#member, offsetof(struct lr_seed_##type, member), 1, kind, LR_SEED_##OF            \
	}
#define INDEX(type, member, OF) TO(type, SEED_INDEX, member, OF)
#define MAYBE(type, member, OF) TO(type, SEED_MAYBE, member, OF)
#define RANGE(type, member, OF) TO(type, SEED_RANGE, member, OF)

static const struct seed_field host[] = {
	U32(host, machine),  U32(host, page),      X64(host, xfeatures), U32(host, xsave),
	TEXT(host, release), U32(host, vdso),      U32(host, vvar),      X64(host, vdso_sum),
	I64(host, realtime), I64(host, monotonic), I64(host, boottime),
};

static const struct seed_field process[] = {
	U32(process, pid),
	MAYBE(process, parent, PROCESS),
	U32(process, pgid),
	U32(process, sid),
	X32(process, flags),
	U32(process, status),
	MAYBE(process, mm, MM),
	MAYBE(process, fs, FS),
	RANGE(process, threads, THREAD),
	RANGE(process, fds, FD),
	RANGE(process, limits, LIMIT),
	RANGE(process, actions, ACTION),
	RANGE(process, signals, SIGNAL),
	RANGE(process, timers, TIMER),
	I32(process, oom_score_adj),
	X32(process, personality),
	U32(process, dumpable),
	U32(process, subreaper),
	F(process, SEED_I64, itimers, 6),
};

static const struct seed_field thread[] = {
	U32(thread, tid),
	INDEX(thread, cred, CRED),
	F(thread, SEED_X64, regs, LR_SEED_REGS),
	BYTES(thread, xsave),
	X64(thread, mask),
	RANGE(thread, signals, SIGNAL),
	X64(thread, altstack),
	X64(thread, altstack_size),
	X32(thread, altstack_flags),
	U32(thread, rseq_size),
	X64(thread, rseq),
	X32(thread, rseq_signature),
	U32(thread, pdeathsig),
	X64(thread, robust_list),
	X64(thread, robust_size),
	X64(thread, clear_tid),
	X64(thread, timer_slack),
	U32(thread, policy),
	U32(thread, priority),
	I32(thread, nice),
	X32(thread, sched_flags),
	F(thread, SEED_NAME, name, 1),
	U32(thread, mce_kill),
	X32(thread, speculation),
};

static const struct seed_field mm[] = {
	X64(mm, start_code), X64(mm, end_code),    X64(mm, start_data),  X64(mm, end_data),
	X64(mm, start_brk),  X64(mm, brk),         X64(mm, start_stack), X64(mm, arg_start),
	X64(mm, arg_end),    X64(mm, env_start),   X64(mm, env_end),     BYTES(mm, auxv),
	TEXT(mm, exe),       U32(mm, thp_disable), RANGE(mm, vmas, VMA), RANGE(mm, runs, RUN),
	X32(mm, flags),      X32(mm, keys),
};

static const struct seed_field vma[] = {
	X64(vma, start),
	X64(vma, end),
	X64(vma, offset),
	U32(vma, kind),
	X32(vma, prot),
	X32(vma, flags),
	MAYBE(vma, backing, BACKING),
	MAYBE(vma, object, OBJECT),
};

static const struct seed_field run[] = {X64(run, start), X64(run, pages), X64(run, at)};

static const struct seed_field object[] = {
	U32(object, kind),  X32(object, seals), X64(object, size),
	TEXT(object, name), X32(object, flags), RANGE(object, runs, RUN),
};

static const struct seed_field backing[] = {
	TEXT(backing, path),
	U32(backing, writable),
	X64(backing, size),
	X64(backing, sum),
};

static const struct seed_field file[] = {
	U32(file, kind),
	X32(file, flags),
	X64(file, pos),
	TEXT(file, path),
	MAYBE(file, object, OBJECT),
	MAYBE(file, channel, CHANNEL),
	F(file, SEED_X64, args, 5),
	RANGE(file, watches, WATCH),
	U32(file, signal),
	U32(file, owner_kind),
	U32(file, owner),
};

static const struct seed_field fd[] = {
	U32(fd, number),
	INDEX(fd, file, FILE),
	U32(fd, cloexec),
};

static const struct seed_field channel[] = {
	U32(channel, capacity),
	X32(channel, ends),
	{"read0", offsetof(struct lr_seed_channel, data[0]), 1, SEED_BYTES, 0},
	{"read1", offsetof(struct lr_seed_channel, data[1]), 1, SEED_BYTES, 0},
	U32(channel, uid),
	U32(channel, gid),
	X32(channel, mode),
	F(channel, SEED_X32, set, 2),
	{"options0", offsetof(struct lr_seed_channel, options[0]), LR_SEED_OPTIONS_MOST, SEED_I32,
	 0},
	{"options1", offsetof(struct lr_seed_channel, options[1]), LR_SEED_OPTIONS_MOST, SEED_I32,
	 0},
};

static const struct seed_field watch[] = {
	U32(watch, number), MAYBE(watch, file, FILE), TEXT(watch, path),
	X32(watch, mask),   X64(watch, data),
};

static const struct seed_field fs[] = {TEXT(fs, cwd), TEXT(fs, root), X32(fs, umask)};

static const struct seed_field cred[] = {
	F(cred, SEED_U32, uids, 4), F(cred, SEED_U32, gids, 4), X64(cred, inheritable),
	X64(cred, permitted),       X64(cred, effective),       X64(cred, bounding),
	X64(cred, ambient),         X32(cred, securebits),      U32(cred, no_new_privs),
	BYTES(cred, groups),
};

static const struct seed_field limit[] = {X64(limit, soft), X64(limit, hard)};

static const struct seed_field action[] = {
	U32(action, signal),   X64(action, handler), X64(action, flags),
	X64(action, restorer), X64(action, mask),
};

static const struct seed_field signal[] = {F(signal, SEED_OCTETS, info, 128)};

static const struct seed_field timer[] = {
	I32(timer, id),  U32(timer, clock),         U32(timer, signal),   U32(timer, notify),
	U32(timer, tid), X64(timer, value_pointer), I64(timer, interval), I64(timer, left),
};

static const struct seed_field tmpfs[] = {
	TEXT(tmpfs, path),
	X32(tmpfs, flags),
	RANGE(tmpfs, nodes, NODE),
};

static const struct seed_field node[] = {
	MAYBE(node, parent, NODE), TEXT(node, name), TEXT(node, target), MAYBE(node, same, NODE),
	X32(node, mode),           U32(node, uid),   U32(node, gid),     X32(node, flags),
	I64(node, atime),          I64(node, mtime), X64(node, size),    BYTES(node, attributes),
	RANGE(node, runs, RUN),
};

static const struct seed_field changed[] = {TEXT(changed, path)};

static const struct seed_field terminal[] = {
	X32(terminal, flags),      U32(terminal, session),
	U32(terminal, foreground), X32(terminal, iflag),
	X32(terminal, oflag),      X32(terminal, cflag),
	X32(terminal, lflag),      U32(terminal, ispeed),
	U32(terminal, ospeed),     U32(terminal, rows),
	U32(terminal, columns),    U32(terminal, width),
	U32(terminal, height),     F(terminal, SEED_OCTETS, cc, 24),
};

static const struct seed_field endpoint[] = {
	U32(endpoint, state),
	U32(endpoint, domain),
	U32(endpoint, type),
	U32(endpoint, protocol),
	BYTES(endpoint, address),
	U32(endpoint, backlog),
	X32(endpoint, set),
	F(endpoint, SEED_I32, options, LR_SEED_OPTIONS_MOST),
	U32(endpoint, uid),
	U32(endpoint, gid),
	TEXT(endpoint, dir),
	X32(endpoint, mode),
	U32(endpoint, file_uid),
	U32(endpoint, file_gid),
	F(endpoint, SEED_NAME, congestion, 1),
};

#define SHAPE(TYPE, kind, text)                                                                    \
	[LR_SEED_##TYPE] = {text, sizeof(struct lr_seed_##kind), kind, LR_ARRAY_SIZE(kind)}

const struct seed_shape lr_seed_shapes[LR_SEED_TYPES] = {
	[LR_SEED_STRING] = {"strings", 1, NULL, 0},
	[LR_SEED_BYTES] = {"bytes", 1, NULL, 0},
	SHAPE(HOST, host, "host"),
	SHAPE(PROCESS, process, "processes"),
	SHAPE(THREAD, thread, "threads"),
	SHAPE(MM, mm, "mms"),
	SHAPE(VMA, vma, "vmas"),
	SHAPE(RUN, run, "runs"),
	SHAPE(OBJECT, object, "objects"),
	SHAPE(BACKING, backing, "backings"),
	SHAPE(FILE, file, "files"),
	SHAPE(FD, fd, "fds"),
	SHAPE(CHANNEL, channel, "channels"),
	SHAPE(WATCH, watch, "watches"),
	SHAPE(FS, fs, "fs"),
	SHAPE(CRED, cred, "creds"),
	SHAPE(LIMIT, limit, "limits"),
	SHAPE(ACTION, action, "actions"),
	SHAPE(SIGNAL, signal, "signals"),
	SHAPE(TIMER, timer, "timers"),
	SHAPE(TMPFS, tmpfs, "tmpfs"),
	SHAPE(NODE, node, "nodes"),
	SHAPE(TERMINAL, terminal, "terminal"),
	SHAPE(CHANGED, changed, "changed"),
	SHAPE(ENDPOINT, endpoint, "endpoints"),
};
