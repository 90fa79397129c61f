/* SPDX-License-Identifier: Apache-2.0 */
/* cli: log entries and their four destinations. */
#define LR_ROOM ""
#include "src/cli/log_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"

#define ENTRY_MAX 4096

enum kind { TO_STDERR, TO_FILE, TO_JOURNALD, TO_SYSLOG };

static struct {
	enum kind kind;
	bool json;
	bool quiet; /* JSON at the default level: the final error only */
	int fd;
	const char *name;
} sink = {.fd = STDERR_FILENO};

static const char *const level_names[] = {"error", "warning", "info", "debug"};
/* syslog(3) priorities: err, warning, info, debug. */
static const char priorities[] = {3, 4, 6, 7};

/* ---- entries ----------------------------------------------------------------------------- */

/* Text that stops at the end of its buffer, always leaving `keep` bytes for what must follow. */
struct entry {
	char *buf;
	size_t len, size, keep;
};

static void put(struct entry *e, const char *text, size_t n)
{
	if (e->len + n + e->keep >= e->size)
		return;
	memcpy(e->buf + e->len, text, n);
	e->len += n;
}

static void put_time(struct entry *e, int64_t t)
{
	char text[LR_UTC];

	put(e, text, (size_t)(lr_utc(text, t) - text));
	put(e, "Z", 1);
}

/* Bytes of the UTF-8 character at s, or 0 if it is none (overlong, surrogate, cut off). */
static size_t utf8_length(const unsigned char *s)
{
	size_t n = s[0] < 0x80   ? 1
		   : s[0] < 0xc2 ? 0
		   : s[0] < 0xe0 ? 2
		   : s[0] < 0xf0 ? 3
		   : s[0] < 0xf5 ? 4
				 : 0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* The inside of a quoted string; JSON and logrus' text differ only for control characters. */
static void put_quoted(struct entry *e, const char *msg, bool json)
{
	for (const unsigned char *s = (const unsigned char *)msg; *s;) {
		char text[8];
		size_t n = utf8_length(s);
		if (*s == '"' || *s == '\\') {
			text[0] = '\\';
			text[1] = (char)*s;
			put(e, text, 2);
		} else if (*s == '\n') {
			put(e, "\\n", 2);
		} else if (*s == '\t') {
			put(e, "\\t", 2);
		} else if (*s < 0x20 || *s == 0x7f) {
			int len = snprintf(text, sizeof(text), json ? "\\u%04x" : "\\x%02x", *s);
			put(e, text, (size_t)len);
		} else if (n) {
			put(e, (const char *)s, n);
		} else {
			put(e, "\xef\xbf\xbd", 3); /* U+FFFD: not UTF-8 */
		}
		s += n ? n : 1;
	}
}

#define PUT(e, literal) put((e), (literal), sizeof(literal) - 1)

size_t lr_cli_log_text(enum lr_level level, const char *msg, int64_t unix_time, char *buf,
		       size_t size)
{
	struct entry e = {.buf = buf, .size = size, .keep = 4};
	const char *name = level_names[level];

	PUT(&e, "time=\"");
	put_time(&e, unix_time);
	PUT(&e, "\" level=");
	put(&e, name, strlen(name));
	PUT(&e, " msg=\"");
	put_quoted(&e, msg, false);
	e.keep = 0;
	PUT(&e, "\"\n");
	buf[e.len] = '\0';
	return e.len;
}

size_t lr_cli_log_json(enum lr_level level, const char *msg, int64_t unix_time, char *buf,
		       size_t size)
{
	struct entry e = {.buf = buf, .size = size, .keep = 48};
	const char *name = level_names[level];

	PUT(&e, "{\"level\":\"");
	put(&e, name, strlen(name));
	PUT(&e, "\",\"msg\":\"");
	put_quoted(&e, msg, true);
	e.keep = 0;
	PUT(&e, "\",\"time\":\"");
	put_time(&e, unix_time);
	PUT(&e, "\"}\n");
	buf[e.len] = '\0';
	return e.len;
}

static size_t format(enum lr_level level, const char *msg, char *buf, size_t size)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now); /* vDSO: not a system call */
	return sink.json ? lr_cli_log_json(level, msg, now.tv_sec, buf, size)
			 : lr_cli_log_text(level, msg, now.tv_sec, buf, size);
}

/* ---- destinations ------------------------------------------------------------------------ */

/* journald's native protocol: a datagram of FIELD=value lines. Newlines would need its binary form,
 * so they become spaces. */
static size_t format_journald(enum lr_level level, const char *msg, char *buf, size_t size)
{
	int head = snprintf(buf, size,
			    "PRIORITY=%d\nSYSLOG_IDENTIFIER=%s\nMESSAGE=", priorities[level],
			    sink.name);
	int n = snprintf(buf + head, size - (size_t)head, "%s", msg);
	size_t len = (size_t)head + (size_t)n < size - 1 ? (size_t)head + (size_t)n : size - 2;

	for (size_t i = (size_t)head; i < len; i++)
		if (buf[i] == '\n')
			buf[i] = ' ';
	buf[len++] = '\n';
	return len;
}

/* The local form of RFC 3164 without a time stamp, which the daemon adds. Facility: daemon (3). */
static size_t format_syslog(enum lr_level level, const char *msg, char *buf, size_t size)
{
	int n = snprintf(buf, size, "<%d>%s[%d]: %s", 3 << 3 | priorities[level], sink.name,
			 getpid(), msg);
	return (size_t)n < size ? (size_t)n : size - 1;
}

static void emit(enum lr_level level, const char *msg)
{
	char buf[ENTRY_MAX];
	size_t n;

	if (sink.kind == TO_JOURNALD)
		n = format_journald(level, msg, buf, sizeof(buf));
	else if (sink.kind == TO_SYSLOG)
		n = format_syslog(level, msg, buf, sizeof(buf));
	else
		n = format(level, msg, buf, sizeof(buf));
	(void)!lr_write_full(sink.fd, buf, n); /* nobody is left to be told */
}

static void take_line(enum lr_level level, const char *line, void *arg)
{
	if (!sink.quiet)
		emit(level, line);
}

static int connect_to(const char *path, struct lr_err *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	LR_CLEANUP_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return lr_fail(err, errno, "--log: socket");
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return lr_fail(err, errno, "--log: connect to %s", path);
	return lr_take_fd(&fd);
}

static int open_destination(const char *log, struct lr_err *err)
{
	enum kind kind = TO_FILE;
	const char *name = strchr(log, ':');
	int fd;

	if (lr_has_prefix(log, "journald:")) {
		kind = TO_JOURNALD;
		fd = connect_to("/run/systemd/journal/socket", err);
	} else if (lr_has_prefix(log, "syslog:")) {
		kind = TO_SYSLOG;
		fd = connect_to("/dev/log", err);
	} else {
		const char *path = lr_has_prefix(log, "file:") ? log + strlen("file:") : log;
		fd = lr_open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0)
			return lr_err_hint(
				(lr_fail(err, errno, "open log file %s", path), err),
				"the directory given by --log must exist and be writable");
	}
	if (fd < 0)
		return fd;
	sink.kind = kind;
	sink.fd = fd;
	sink.name = name && name[1] ? name + 1 : LR_CLI_NAME;
	/* The name stands in one line of the datagram. */
	if (strpbrk(sink.name, "\n\r") || strlen(sink.name) > 256)
		sink.name = LR_CLI_NAME;
	return 0;
}

static void set_level(const struct lr_cli_args *args)
{
	const char *level = lr_cli_str(args, LR_OPT_LOG_LEVEL);

	sink.quiet = sink.json && !level;
	if (level)
		lr_log_level = level[0] == 'e'   ? LR_ERROR
			       : level[0] == 'w' ? LR_WARN
			       : level[0] == 'i' ? LR_INFO
						 : LR_DEBUG;
	if (lr_cli_flag(args, LR_OPT_DEBUG)) {
		lr_log_level = LR_DEBUG;
		sink.quiet = false;
	}
	if (sink.quiet)
		lr_log_level = LR_ERROR; /* format nothing that would be thrown away */
}

int lr_cli_log_open(const struct lr_cli_args *args, struct lr_err *err)
{
	const char *format_name = lr_cli_str(args, LR_OPT_LOG_FORMAT);
	const char *log = lr_cli_str(args, LR_OPT_LOG);

	sink.json = format_name && lr_streq(format_name, "json");
	set_level(args);
	lr_log_set_sink(take_line, NULL);
	return log && log[0] ? open_destination(log, err) : 0;
}

void lr_cli_report(const struct lr_err *err)
{
	char msg[sizeof(struct lr_err) + 64], line[ENTRY_MAX];
	size_t n;

	lr_err_format(err, msg, sizeof(msg));
	if (sink.kind != TO_STDERR) {
		emit(LR_ERROR, msg);
		n = (size_t)snprintf(line, sizeof(line), "%s\n", msg);
	} else if (!sink.json && isatty(STDERR_FILENO)) {
		n = (size_t)snprintf(line, sizeof(line), LR_CLI_NAME ": %s\n", msg);
	} else {
		n = format(LR_ERROR, msg, line, sizeof(line));
	}
	(void)!lr_write_full(STDERR_FILENO, line, n);
}
