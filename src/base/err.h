/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: errors as values.
 *
 * Every fallible function returns 0 (or a non-negative result) or a negative errno, and fills the
 * caller's fixed-size struct lr_err. It holds no heap, so it survives running out of memory and
 * crosses the sync socket as one datagram.
 *
 * What a user reads is `lr_err_format`:  [room: ][step: ]message[ (at config.json path)][:
 * strerror][; hint]
 */
#ifndef LR_BASE_ERR_H
#define LR_BASE_ERR_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#define LR_MUST_CHECK        __attribute__((warn_unused_result))
#define LR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

struct lr_err {
	int code;       /* positive errno; 0: no error */
	int exit_code;  /* 0, or the exit status this error asks for (126, 127, 255, ...) */
	bool terse;     /* show the message alone: callers parse it */
	char room[16];  /* who: "mount" */
	char step[32];  /* doing what: "pivot_root"; empty: not known */
	char path[192]; /* where in config.json: "mounts[3].options"; empty: nowhere */
	char msg[512];  /* what */
	char hint[256]; /* what to do; empty: nothing to say */
};

/*
 * Each fills *err (which may be NULL) and returns -code. A second call on the same err replaces
 * the first: the innermost function that knows most speaks, outer ones add by
 * lr_err_at/_step/_hint. `code` is a positive errno. lr_fail takes the room from the LR_ROOM macro
 * of the calling file.
 */
#define lr_fail(err, code, ...) lr_negative(lr_err_set((err), (code), LR_ROOM, true, __VA_ARGS__))
/* The same without ": strerror(code)" at the end, where the message says it all. */
#define lr_refuse(err, code, ...)                                                                  \
	lr_negative(lr_err_set((err), (code), LR_ROOM, false, __VA_ARGS__))
int lr_err_set(struct lr_err *err, int code, const char *room, bool with_strerror, const char *fmt,
	       ...) LR_PRINTF(5, 6);

/* An error is negative, whatever errno held; the compiler may rely on it. */
static inline int lr_negative(int r)
{
	return r < 0 ? r : -EIO;
}

/* Add the JSON path / the step / the hint if none is set yet. Return -err->code, for tail calls. */
#define lr_err_at(...)   lr_negative(lr_err_add_path(__VA_ARGS__))
#define lr_err_hint(...) lr_negative(lr_err_add_hint(__VA_ARGS__))
#define lr_err_step(...) lr_negative(lr_err_add_step(__VA_ARGS__))
int lr_err_add_path(struct lr_err *err, const char *fmt, ...) LR_PRINTF(2, 3);
int lr_err_add_hint(struct lr_err *err, const char *fmt, ...) LR_PRINTF(2, 3);
int lr_err_add_step(struct lr_err *err, const char *step);

/* "no such file or directory": strerror(3) as the older runtimes print it, the same in
 * every libc. */
const char *lr_strerror(int code);
/* "KILL"; NULL for numbers without a name, the real-time ones among them. */
const char *lr_signal_name(int sig);

/* Forget what was recorded (a fallback is about to be tried). */
void lr_err_clear(struct lr_err *err);

/* One line, no newline, always NUL-terminated. Returns buf. */
char *lr_err_format(const struct lr_err *err, char *buf, size_t size);

#endif
