/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: verbs that ask a running daemon, for people and tests. */
#define LR_ROOM "forkd"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/forkctl/forkctl.h"
#include "src/forkd/main.h"

static int id_of(const char *text, uint8_t id[LR_WIRE_ID], struct lr_err *err)
{
	return lr_wire_id_of(text, strlen(text), id) < 0
		       ? lr_refuse(err, EINVAL, "not a seed's id: %s", text)
		       : 0;
}

static int lease_of(const char *text, uint64_t *ret, struct lr_err *err)
{
	return text && duration_of(text, ret) < 0
		       ? lr_refuse(err, EINVAL, "not a duration: %s", text)
		       : 0;
}

static int add(int sock, char **argv, struct lr_err *err)
{
	char ticket[LR_TICKET_TEXT];
	uint64_t lease = 0;
	int r = lease_of(argv[2], &lease, err);

	if (r == 0)
		r = lr_forkctl_add(sock, argv[1], LR_NOFD, LR_NOFD, lease, ticket, err);
	if (r == 0)
		puts(ticket);
	return r;
}

static void print_seed(const struct lr_wire_seed *s)
{
	char id[LR_WIRE_HEX];

	lr_wire_id_text(s->id, id);
	printf("%s %s lease=%llums users=%u descriptor=%llu pages=%llu sent=%llu missing=%llu\n",
	       id,
	       s->ended     ? lr_wire_code_name(s->ended)
	       : s->missing ? "filling"
			    : "held",
	       (unsigned long long)s->lease, s->users, (unsigned long long)s->length,
	       (unsigned long long)s->pages, (unsigned long long)s->sent,
	       (unsigned long long)s->missing);
}

static int list(int sock, char **argv, struct lr_err *err)
{
	struct lr_wire_msg m = {.count = 1};
	uint8_t id[LR_WIRE_ID];
	int r = argv[1] ? id_of(argv[1], id, err) : 0;

	for (uint32_t at = 0; r == 0 && at < m.count; at += (uint32_t)m.n) {
		r = lr_forkctl_list(sock, argv[1] ? id : NULL, at, &m, err);
		for (size_t i = 0; r == 0 && i < m.n; i++)
			print_seed(&m.seeds[i]);
		if (r == 0 && !m.n)
			break;
	}
	return r;
}

static int extend(int sock, char **argv, struct lr_err *err)
{
	uint8_t id[LR_WIRE_ID];
	uint64_t lease = 0;
	int r = id_of(argv[1], id, err);

	if (r == 0)
		r = lease_of(argv[2], &lease, err);
	return r < 0 ? r : lr_forkctl_extend(sock, id, lease, err);
}

static int rm(int sock, char **argv, struct lr_err *err)
{
	uint8_t id[LR_WIRE_ID];
	int r = id_of(argv[1], id, err);

	return r < 0 ? r : lr_forkctl_remove(sock, id, err);
}

/* The descriptor on standard output. */
static int fetch(int sock, char **argv, struct lr_err *err)
{
	char ticket[LR_TICKET_TEXT], buf[65536];
	uint8_t id[LR_WIRE_ID];
	LR_CLEANUP_FD int fd = LR_NOFD;
	ssize_t n;
	int r = lr_forkctl_ticket(argv[1], ticket, err);

	if (r == 0)
		r = lr_forkctl_fetch(sock, ticket, &fd, id, err);
	if (r < 0)
		return r;
	lseek(fd, 0, SEEK_SET);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		if (lr_write_full(STDOUT_FILENO, buf, (size_t)n) != n)
			return lr_fail(err, EIO, "write the descriptor");
	return 0;
}

static const struct {
	const char *name;
	int least, most;
	int (*run)(int sock, char **argv, struct lr_err *err);
} verbs[] = {{"add", 1, 2, add},       {"list", 0, 0, list}, {"inspect", 1, 1, list},
	     {"extend", 2, 2, extend}, {"rm", 1, 1, rm},     {"fetch", 1, 1, fetch}};

int ask_daemon(const char *control, int argc, char **argv)
{
	struct lr_err err = {0};
	char line[1024];

	for (size_t i = 0; i < LR_ARRAY_SIZE(verbs); i++) {
		if (!lr_streq(argv[0], verbs[i].name) || argc - 1 < verbs[i].least ||
		    argc - 1 > verbs[i].most)
			continue;
		LR_CLEANUP_FD int sock = lr_forkctl_connect(control, &err);
		int r = sock < 0 ? sock : verbs[i].run(sock, argv, &err);
		if (r == 0)
			return 0;
		fprintf(stderr, "lean-forkd: %s\n", lr_err_format(&err, line, sizeof(line)));
		return 1;
	}
	return -1;
}
