/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: figures in Prometheus' text format, to whoever connects. */
#define LR_ROOM "forkd"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/forkd/forkd.h"
#include "src/forkd/held.h"

struct forkd_counts forkd_counts;

static const struct {
	const char *name, *type, *help;
	atomic_ullong *value;
} metrics[] = {
	{"connections_total", "counter", "Connections of other hosts.", &forkd_counts.connections},
	{"refused_total", "counter", "Connections that were not let in.", &forkd_counts.refused},
	{"handshakes_failed_total", "counter", "Peers that did not prove a secret.",
	 &forkd_counts.handshakes_failed},
	{"malformed_total", "counter", "Messages that were none.", &forkd_counts.malformed},
	{"sent_bytes_total", "counter", "Bytes of seeds sent by TCP.", &forkd_counts.bytes_sent},
	{"reads_total", "counter", "Questions for pages answered.", &forkd_counts.reads},
	{"fetched_bytes_total", "counter", "Bytes of seeds fetched by TCP.",
	 &forkd_counts.bytes_fetched},
	{"cached_bytes", "gauge", "Pages kept for children.", &forkd_counts.cached},
	{"children", "gauge", "Processes whose memory is coming.", &forkd_counts.children},
	{"children_ended_total", "counter", "Processes ended for memory that can't come.",
	 &forkd_counts.children_ended},
	{"children_complete_total", "counter", "Processes whose memory has come.",
	 &forkd_counts.children_done},
	{"faults_total", "counter", "Faults served.", &forkd_counts.faults},
	{"filled_pages_total", "counter", "Pages put into children.", &forkd_counts.pages_filled},
	{"prefetched_pages_total", "counter", "Pages brought before anybody touched them.",
	 &forkd_counts.pages_prefetched},
	{"events_total", "counter", "Changes of children's memory.", &forkd_counts.events},
	{"connects_total", "counter", "Connections to other hosts.", &forkd_counts.connects},
	{"rdma_read_bytes_total", "counter", "Bytes of seeds of other hosts read by RDMA.",
	 &forkd_counts.rdma_bytes},
	{"rdma_reads_total", "counter", "Times that pages were read by RDMA.",
	 &forkd_counts.rdma_reads},
	{"rdma_connects_total", "counter", "Connections to other hosts by RDMA.",
	 &forkd_counts.rdma_connects},
	{"rdma_failures_total", "counter", "Connections by RDMA that failed.",
	 &forkd_counts.rdma_failures},
	{"rdma_peers", "gauge", "Connections of other hosts by RDMA.", &forkd_counts.rdma_peers},
	{"rdma_refused_total", "counter", "Connections by RDMA that were not let in.",
	 &forkd_counts.rdma_refused},
	{"rdma_pinned_bytes", "gauge", "Pages of seeds pinned for RDMA.",
	 &forkd_counts.rdma_pinned},
	{"keepers_total", "counter", "Keepers started.", &forkd_counts.keepers},
	{"exported_pages", "gauge", "Pages of held seeds that the kernel module has.",
	 &forkd_counts.exported},
	{"sources", "gauge", "Seeds whose memory comes by the kernel module.",
	 &forkd_counts.sources},
	{"source_reads_total", "counter", "Questions of the kernel module answered.",
	 &forkd_counts.source_reads},
	{"source_pages_total", "counter", "Pages given to the kernel module.",
	 &forkd_counts.source_pages},
	{"source_links_total", "counter", "Sources that the kernel module reads by RDMA itself.",
	 &forkd_counts.links},
	{"source_linked_pages_total", "counter", "Pages that it has read so.",
	 &forkd_counts.linked_pages},
	{"source_failures_total", "counter", "Questions of the kernel module without pages.",
	 &forkd_counts.source_failures},
};

static size_t write_all(char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size,
				    "# HELP lean_forkd_seeds Seeds held.\n"
				    "# TYPE lean_forkd_seeds gauge\nlean_forkd_seeds %zu\n",
				    held_count());

	for (size_t i = 0; i < LR_ARRAY_SIZE(metrics) && n < size; i++)
		n += (size_t)snprintf(out + n, size - n,
				      "# HELP lean_forkd_%s %s\n# TYPE lean_forkd_%s %s\n"
				      "lean_forkd_%s %llu\n",
				      metrics[i].name, metrics[i].help, metrics[i].name,
				      metrics[i].type, metrics[i].name,
				      (unsigned long long)*metrics[i].value);
	return n < size ? n : size - 1;
}

/* Never waits: what doesn't fit into the socket's buffer, which is larger, is nobody's. */
void metrics_accept(int listener)
{
	char text[8192];
	int sock = forkd_accept(listener, NULL, NULL, SOCK_NONBLOCK);

	if (sock < 0)
		return;
	send(sock, text, write_all(text, sizeof(text)), MSG_NOSIGNAL);
	close(sock);
}
