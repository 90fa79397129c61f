/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: the command line of lean-forkd. */
#define LR_ROOM "forkd"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/forkctl/forkctl.h"
#include "src/forkd/forkd.h"
#include "src/forkd/main.h"

struct forkd_config forkd_config = {
	.control = LR_FORKCTL_SOCKET,
	.lease = 3600000,
	.keep = 60000,
	.patience = 30000,
	.cache = UINT64_C(1) << 30,
	.descriptor = 64 << 20,
	.connections = 256,
	.per_peer = 64,
	.handshake_ms = 5000,
	.idle_ms = 120000,
	.rdma_memory = UINT64_C(8) << 30,
};

static const char usage[] =
	"usage: lean-forkd [--control SOCKET] serve [OPTION...]\n"
	"       lean-forkd [--control SOCKET] add DIRECTORY [LEASE]\n"
	"       lean-forkd [--control SOCKET] list\n"
	"       lean-forkd [--control SOCKET] inspect|rm ID\n"
	"       lean-forkd [--control SOCKET] extend ID LEASE\n"
	"       lean-forkd [--control SOCKET] fetch TICKET|file:PATH|env:NAME\n"
	"\n"
	"options of serve:\n"
	"  --listen HOST:PORT    serve other hosts there; tickets have this address\n"
	"  --plain               give and take tickets without TLS, on networks that are trusted\n"
	"  --metrics SOCKET      write figures, for Prometheus, to whoever connects there\n"
	"  --lease DURATION      end a seed that nobody uses for so long (1h)\n"
	"  --keep DURATION       when this daemon has ended, keep its seeds so long for the next "
	"(1m)\n"
	"  --patience DURATION   let a child wait so long for a host that does not answer (30s)\n"
	"  --cache BYTES         keep so much of the pages that came (1073741824)\n"
	"  --descriptor BYTES    refuse a seed with a longer descriptor (67108864)\n"
	"  --rate BYTES          send so much in a second to one host (0: no limit)\n"
	"  --connections N       let so many connections of other hosts in (256)\n"
	"  --per-peer N          let so many of one host in (64)\n"
	"  --handshake DURATION  close a connection that has proved nothing by then (5s)\n"
	"  --idle DURATION       close a connection that asks nothing for so long (2m)\n"
	"  --module auto|off     fill memory by the kernel module lean_seed, where it is there "
	"(auto)\n"
	"  --rdma auto|off|require  read pages by RDMA, in clear, where both hosts can (auto)\n"
	"  --rdma-memory BYTES   pin so much of the seeds held for RDMA (8589934592)\n";

enum {
	CONTROL = 1,
	LISTEN,
	PLAIN,
	METRICS,
	LEASE,
	KEEP,
	PATIENCE,
	CACHE,
	DESCRIPTOR,
	RATE,
	CONNECTIONS,
	PER_PEER,
	HANDSHAKE,
	IDLE,
	MODULE,
	RDMA,
	RDMA_MEMORY,
	HELP,
	VERSION
};

static const struct option options[] = {
	{"control", 1, NULL, CONTROL},
	{"listen", 1, NULL, LISTEN},
	{"plain", 0, NULL, PLAIN},
	{"metrics", 1, NULL, METRICS},
	{"lease", 1, NULL, LEASE},
	{"keep", 1, NULL, KEEP},
	{"patience", 1, NULL, PATIENCE},
	{"cache", 1, NULL, CACHE},
	{"descriptor", 1, NULL, DESCRIPTOR},
	{"rate", 1, NULL, RATE},
	{"connections", 1, NULL, CONNECTIONS},
	{"per-peer", 1, NULL, PER_PEER},
	{"handshake", 1, NULL, HANDSHAKE},
	{"idle", 1, NULL, IDLE},
	{"module", 1, NULL, MODULE},
	{"rdma", 1, NULL, RDMA},
	{"rdma-memory", 1, NULL, RDMA_MEMORY},
	{"help", 0, NULL, HELP},
	{"version", 0, NULL, VERSION},
	{0},
};

static int ms_of(const char *text, unsigned *ret)
{
	uint64_t ms;

	if (duration_of(text, &ms) < 0 || !ms || ms > 1 << 30)
		return -1;
	*ret = (unsigned)ms;
	return 0;
}

static int rdma_of(const char *text, enum forkd_rdma *ret)
{
	static const char *const names[] = {"auto", "off", "require"};

	for (size_t i = 0; i < LR_ARRAY_SIZE(names); i++)
		if (lr_streq(text, names[i])) {
			*ret = (enum forkd_rdma)i;
			return 0;
		}
	return -1;
}

/* Negative: no such value. */
static int set(int option, const char *value)
{
	struct forkd_config *c = &forkd_config;

	switch (option) {
	case CONTROL:
		c->control = value;
		return 0;
	case LISTEN:
		c->listen = value;
		return 0;
	case PLAIN:
		c->plain = true;
		return 0;
	case METRICS:
		c->metrics = value;
		return 0;
	case LEASE:
		return duration_of(value, &c->lease);
	case KEEP:
		return duration_of(value, &c->keep);
	case PATIENCE:
		return duration_of(value, &c->patience);
	case CACHE:
		return lr_parse_u64(value, &c->cache);
	case DESCRIPTOR:
		return lr_parse_u64(value, &c->descriptor);
	case RATE:
		return lr_parse_u64(value, &c->rate);
	case CONNECTIONS:
		return lr_parse_u32(value, &c->connections);
	case PER_PEER:
		return lr_parse_u32(value, &c->per_peer);
	case HANDSHAKE:
		return ms_of(value, &c->handshake_ms);
	case IDLE:
		return ms_of(value, &c->idle_ms);
	case MODULE:
		c->no_module = lr_streq(value, "off");
		return c->no_module || lr_streq(value, "auto") ? 0 : -1;
	case RDMA:
		return rdma_of(value, &c->rdma);
	case RDMA_MEMORY:
		return lr_parse_u64(value, &c->rdma_memory);
	default:
		return -1;
	}
}

/* Else our log would go into a peer's connection, or a seed's file. */
static int fill_stdio(void)
{
	for (;;) {
		int fd = lr_open("/dev/null", O_RDWR);
		if (fd < 0) {
			fprintf(stderr, "lean-forkd: open /dev/null: %s\n", lr_strerror(errno));
			return -1;
		}
		if (fd > STDERR_FILENO) {
			close(fd);
			return 0;
		}
	}
}

/* what: NULL if it is said already. */
static int wrong(const char *what, const char *value)
{
	if (what)
		fprintf(stderr, "lean-forkd: %s: %s\n", what, value);
	fputs(usage, stderr);
	return 2;
}

/* -1: all are set; else the exit status. */
static int take_options(int argc, char **argv)
{
	int o, i = 0;

	while ((o = getopt_long(argc, argv, "", options, &i)) != -1) {
		if (o == HELP || o == VERSION) {
			fputs(o == HELP ? usage : "lean-forkd " LR_VERSION "\n", stdout);
			return 0;
		}
		if (o == '?')
			return wrong(NULL, NULL);
		if (set(o, optarg) < 0) {
			fprintf(stderr, "lean-forkd: --%s: no such value: %s; see lean-forkd(8)\n",
				options[i].name, optarg);
			return 2;
		}
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct lr_err err = {0};
	char line[1024];
	int r = fill_stdio() < 0 ? 1 : take_options(argc, argv);

	if (r >= 0)
		return r;
	if (optind == argc)
		return wrong(NULL, NULL);
	if (!lr_streq(argv[optind], "serve")) {
		r = ask_daemon(forkd_config.control, argc - optind, argv + optind);
		return r < 0 ? wrong("no such verb, or not with so many arguments", argv[optind])
			     : r;
	}
	if (optind + 1 < argc)
		return wrong("serve takes no arguments", argv[optind + 1]);
	if (daemon_run(&err) == 0)
		return 0;
	fprintf(stderr, "lean-forkd: %s\n", lr_err_format(&err, line, sizeof(line)));
	return 1;
}
