// SPDX-License-Identifier: GPL-2.0
/* The transport between hosts: pages are read from the memory of the other one. */
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/semaphore.h>
#include <linux/slab.h>

#include "internal.h"
#include "rdma.h"

#define LEAN_READS_MAX 128 /* under way, of one source */
#define LEAN_SGE_MAX 16

struct lean_client {
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	unsigned int max_sge;
	struct semaphore slots;
	bool broken;
	/* While it connects. */
	struct completion event;
	int status;
	struct lean_table *table;
	u64 table_dma;
	struct ib_cqe table_cqe;
	struct completion table_done;
	/* What the other end told. */
	unsigned long pages;
	unsigned int chunk_pages;
	unsigned int chunks;
	struct lean_chunk *chunk;
};

/* One work request: a run of pages in one chunk. */
struct lean_read {
	struct ib_cqe cqe;
	struct ib_rdma_wr wr;
	struct ib_sge sge[LEAN_SGE_MAX];
	struct lean_client *client;
	struct lean_reads *all;
};

/* All of a batch. */
struct lean_reads {
	atomic_t pending;
	int error;
	struct completion done;
	unsigned int mapped;
	u64 dma[LEAN_BATCH_MAX];
	struct lean_read read[LEAN_BATCH_MAX];
};

static void reads_put(struct lean_reads *all)
{
	if (atomic_dec_and_test(&all->pending))
		complete(&all->done);
}

static void read_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct lean_read *read = container_of(wc->wr_cqe, struct lean_read, cqe);

	if (wc->status != IB_WC_SUCCESS)
		WRITE_ONCE(read->all->error, -ENOLINK);
	up(&read->client->slots);
	reads_put(read->all);
}

/* How many pages from the place'th on are one run. */
static unsigned int run_length(struct lean_client *client, struct lean_batch *batch,
			       unsigned int place)
{
	unsigned long first = batch->index[place];
	unsigned int count = 1;

	while (place + count < batch->count && count < client->max_sge &&
	       batch->index[place + count] == first + count &&
	       (first + count) % client->chunk_pages != 0)
		count++;
	return count;
}

static int post_run(struct lean_client *client, struct lean_batch *batch, struct lean_reads *all,
		    unsigned int place, unsigned int count)
{
	struct lean_read *read = &all->read[place];
	struct lean_chunk *chunk = &client->chunk[batch->index[place] / client->chunk_pages];
	unsigned int i;
	int err;

	for (i = 0; i < count; i++) {
		read->sge[i].addr = all->dma[place + i];
		read->sge[i].length = PAGE_SIZE;
		read->sge[i].lkey = client->pd->local_dma_lkey;
	}
	read->client = client;
	read->all = all;
	read->cqe.done = read_done;
	read->wr.wr.wr_cqe = &read->cqe;
	read->wr.wr.opcode = IB_WR_RDMA_READ;
	read->wr.wr.send_flags = IB_SEND_SIGNALED;
	read->wr.wr.sg_list = read->sge;
	read->wr.wr.num_sge = count;
	read->wr.remote_addr = le64_to_cpu(chunk->address) +
			       (batch->index[place] % client->chunk_pages) * PAGE_SIZE;
	read->wr.rkey = le32_to_cpu(chunk->key);
	down(&client->slots);
	atomic_inc(&all->pending);
	err = ib_post_send(client->id->qp, &read->wr.wr, NULL);
	if (err) {
		up(&client->slots);
		reads_put(all);
	}
	return err;
}

static int map_pages(struct lean_client *client, struct lean_batch *batch, struct lean_reads *all)
{
	struct ib_device *device = client->id->device;

	for (; all->mapped < batch->count; all->mapped++) {
		u64 dma = ib_dma_map_page(device, batch->page[all->mapped]->page, 0, PAGE_SIZE,
					  DMA_FROM_DEVICE);

		if (ib_dma_mapping_error(device, dma))
			return -EIO;
		all->dma[all->mapped] = dma;
	}
	return 0;
}

static void unmap_pages(struct lean_client *client, struct lean_reads *all)
{
	while (all->mapped--)
		ib_dma_unmap_page(client->id->device, all->dma[all->mapped], PAGE_SIZE,
				  DMA_FROM_DEVICE);
}

static int client_read(struct lean_source *source, struct lean_batch *batch)
{
	struct lean_client *client = source->private;
	struct lean_reads *all = kvzalloc(sizeof(*all), GFP_KERNEL);
	unsigned int place, count;
	int err;

	if (!all)
		return -ENOMEM;
	atomic_set(&all->pending, 1);
	init_completion(&all->done);
	err = READ_ONCE(client->broken) ? -ENOLINK : map_pages(client, batch, all);
	for (place = 0; place < batch->count && !err; place += count) {
		count = run_length(client, batch, place);
		err = post_run(client, batch, all, place, count);
	}
	reads_put(all);
	/* What is posted writes to the pages until it is done or flushed. */
	wait_for_completion(&all->done);
	if (!err)
		err = all->error;
	unmap_pages(client, all);
	kvfree(all);
	if (err)
		lean_source_fail(source, LEAN_SEED_LINK, err, batch->index[0], true);
	return err;
}

static bool client_broken(struct lean_source *source)
{
	struct lean_client *client = source->private;

	return READ_ONCE(client->broken);
}

static void client_cut(struct lean_source *source)
{
	struct lean_client *client = source->private;

	WRITE_ONCE(client->broken, true);
	rdma_disconnect(client->id);
}

static void client_destroy(struct lean_client *client)
{
	struct ib_device *device = client->id ? client->id->device : NULL;

	if (client->id && client->id->qp) {
		rdma_disconnect(client->id);
		ib_drain_qp(client->id->qp);
		rdma_destroy_qp(client->id);
	}
	if (client->table_dma)
		ib_dma_unmap_single(device, client->table_dma, sizeof(*client->table),
				    DMA_FROM_DEVICE);
	if (client->cq)
		ib_free_cq(client->cq);
	if (client->pd)
		ib_dealloc_pd(client->pd);
	if (client->id)
		rdma_destroy_id(client->id);
	kfree(client->table);
	kvfree(client->chunk);
	kfree(client);
	atomic_long_dec(&lean_counts.connections);
}

static void client_free(struct lean_source *source)
{
	client_destroy(source->private);
}

static const struct lean_transport client_transport = {
	.read = client_read,
	.cut = client_cut,
	.broken = client_broken,
	.free = client_free,
};

static int client_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct lean_client *client = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ESTABLISHED:
		client->status = 0;
		break;
	case RDMA_CM_EVENT_REJECTED:
		client->status = -EACCES;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		WRITE_ONCE(client->broken, true);
		client->status = -ENOLINK;
		rdma_disconnect(id);
		complete(&client->table_done);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		client->status = event->status < 0 ? event->status : -EHOSTUNREACH;
		break;
	}
	complete(&client->event);
	return 0;
}

static int wait_for_event(struct lean_client *client, unsigned int timeout)
{
	long left = wait_for_completion_killable_timeout(&client->event,
							 msecs_to_jiffies(timeout));

	if (left <= 0)
		return left ? left : -ETIMEDOUT;
	return client->status;
}

static void table_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct lean_client *client = container_of(wc->wr_cqe, struct lean_client, table_cqe);

	if (wc->status != IB_WC_SUCCESS || wc->byte_len != sizeof(*client->table))
		WRITE_ONCE(client->broken, true);
	complete(&client->table_done);
}

static int post_receive(struct lean_client *client)
{
	struct ib_sge sge = {
		.addr = client->table_dma,
		.length = sizeof(*client->table),
		.lkey = client->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

	client->table_cqe.done = table_received;
	wr.wr_cqe = &client->table_cqe;
	return ib_post_recv(client->id->qp, &wr, NULL);
}

/* What a peer says is checked: it decides where this host reads, and how much it allocates. */
static int table_begin(struct lean_client *client, const struct lean_table *table)
{
	u64 pages = le64_to_cpu(table->pages);

	client->chunk_pages = le32_to_cpu(table->chunk_pages);
	client->chunks = le32_to_cpu(table->chunks);
	if (!pages || pages > LEAN_PAGES_MAX || !client->chunk_pages ||
	    client->chunks > LEAN_CHUNKS_MAX ||
	    le16_to_cpu(table->page_shift) != PAGE_SHIFT ||
	    client->chunks != DIV_ROUND_UP_ULL(pages, client->chunk_pages))
		return -EPROTO;
	client->pages = pages;
	client->chunk = kvcalloc(client->chunks, sizeof(*client->chunk), GFP_KERNEL_ACCOUNT);
	return client->chunk ? 0 : -ENOMEM;
}

/* Takes one message; *have is how many chunks are known. */
static int table_take(struct lean_client *client, unsigned int *have)
{
	const struct lean_table *table = client->table;
	unsigned int count = le32_to_cpu(table->count), i;
	int err = 0;

	if (le32_to_cpu(table->magic) != LEAN_RDMA_MAGIC ||
	    le16_to_cpu(table->version) != LEAN_RDMA_VERSION)
		return -EPROTO;
	if (!client->chunk)
		err = table_begin(client, table);
	if (err)
		return err;
	if (le32_to_cpu(table->first) != *have || !count || count > LEAN_CHUNKS_AT_ONCE ||
	    count > client->chunks - *have)
		return -EPROTO;
	for (i = 0; i < count; i++) {
		unsigned long left = client->pages - (unsigned long)*have * client->chunk_pages;

		client->chunk[*have] = table->chunk[i];
		if (le32_to_cpu(table->chunk[i].pages) !=
		    min_t(unsigned long, left, client->chunk_pages))
			return -EPROTO;
		(*have)++;
	}
	return 0;
}

static int receive_table(struct lean_client *client, unsigned int timeout)
{
	struct ib_device *device = client->id->device;
	unsigned int have = 0;
	long left;
	int err;

	do {
		left = wait_for_completion_killable_timeout(&client->table_done,
							    msecs_to_jiffies(timeout));
		if (left <= 0)
			return left ? left : -ETIMEDOUT;
		if (READ_ONCE(client->broken))
			return -ENOLINK;
		ib_dma_sync_single_for_cpu(device, client->table_dma, sizeof(*client->table),
					   DMA_FROM_DEVICE);
		err = table_take(client, &have);
		ib_dma_sync_single_for_device(device, client->table_dma, sizeof(*client->table),
					      DMA_FROM_DEVICE);
		if (!err && have < client->chunks)
			err = post_receive(client);
	} while (!err && have < client->chunks);
	return err;
}

static int client_setup(struct lean_client *client)
{
	struct ib_device *device = client->id->device;
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = LEAN_READS_MAX + 1, .max_recv_wr = 2, .max_recv_sge = 1 },
	};

	/* There the target of a read has to be registered for remote writes. */
	if (rdma_protocol_iwarp(device, client->id->port_num))
		return -EOPNOTSUPP;
	client->max_sge = min_t(unsigned int, LEAN_SGE_MAX, device->attrs.max_sge_rd ?
				device->attrs.max_sge_rd : device->attrs.max_send_sge);
	attr.cap.max_send_sge = client->max_sge;
	client->pd = ib_alloc_pd(device, 0);
	if (IS_ERR(client->pd)) {
		client->pd = NULL;
		return -ENOMEM;
	}
	client->cq = ib_alloc_cq_any(device, client, LEAN_READS_MAX + 8, IB_POLL_WORKQUEUE);
	if (IS_ERR(client->cq)) {
		client->cq = NULL;
		return -ENOMEM;
	}
	attr.send_cq = client->cq;
	attr.recv_cq = client->cq;
	client->table = kzalloc(sizeof(*client->table), GFP_KERNEL_ACCOUNT);
	if (!client->table)
		return -ENOMEM;
	client->table_dma = ib_dma_map_single(device, client->table, sizeof(*client->table),
					      DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(device, client->table_dma)) {
		client->table_dma = 0;
		return -EIO;
	}
	return rdma_create_qp(client->id, client->pd, &attr);
}

static int client_resolve(struct lean_client *client, struct sockaddr *address,
			  unsigned int timeout)
{
	int err = rdma_resolve_addr(client->id, NULL, address, timeout);

	if (!err)
		err = wait_for_event(client, timeout);
	if (!err)
		err = rdma_resolve_route(client->id, timeout);
	if (!err)
		err = wait_for_event(client, timeout);
	return err;
}

static int client_connect(struct lean_client *client, const u8 *token, unsigned int timeout)
{
	struct lean_hello hello = {
		.magic = cpu_to_le32(LEAN_RDMA_MAGIC),
		.version = cpu_to_le16(LEAN_RDMA_VERSION),
	};
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	int err = client_setup(client);

	if (!err)
		err = post_receive(client);
	if (err)
		return err;
	memcpy(hello.token, token, sizeof(hello.token));
	param.initiator_depth = min_t(int, 16, client->id->device->attrs.max_qp_init_rd_atom);
	err = rdma_connect(client->id, &param);
	memzero_explicit(&hello, sizeof(hello));
	if (!err)
		err = wait_for_event(client, timeout);
	if (!err)
		err = receive_table(client, timeout);
	return err;
}

int lean_rdma_connect(void __user *user, size_t size)
{
	struct lean_seed_connect arg;
	struct sockaddr_storage address;
	struct lean_client *client;
	int err = lean_copy_in(&arg, sizeof(arg), user, size);

	if (!err && arg.reserved)
		err = -EINVAL;
	if (!err)
		err = lean_copy_address(&address, arg.address, arg.length);
	if (err)
		return err;
	if (!arg.timeout)
		arg.timeout = LEAN_RDMA_TIMEOUT;
	client = kzalloc(sizeof(*client), GFP_KERNEL_ACCOUNT);
	if (!client)
		return -ENOMEM;
	atomic_long_inc(&lean_counts.connections);
	init_completion(&client->event);
	init_completion(&client->table_done);
	sema_init(&client->slots, LEAN_READS_MAX);
	client->id = rdma_create_id(current->nsproxy->net_ns, client_event, client, RDMA_PS_TCP,
				    IB_QPT_RC);
	if (IS_ERR(client->id)) {
		err = PTR_ERR(client->id);
		client->id = NULL;
	}
	if (!err)
		err = client_resolve(client, (struct sockaddr *)&address, arg.timeout);
	if (!err)
		err = client_connect(client, arg.token, arg.timeout);
	memzero_explicit(arg.token, sizeof(arg.token));
	if (err) {
		client_destroy(client);
		return err;
	}
	return lean_source_create(&client_transport, client, client->pages, arg.readahead);
}
