// SPDX-License-Identifier: GPL-2.0
/*
 * The end that has the seed. Each connection has a protection domain and
 * memory regions of its own: a peer reaches the pages of its seed, by keys that
 * are good for its connection, may read them only, and when the connection is
 * taken down the keys are good for nothing.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "internal.h"
#include "rdma.h"

static unsigned int chunk_pages = LEAN_CHUNK_PAGES;
module_param(chunk_pages, uint, 0600);
MODULE_PARM_DESC(chunk_pages, "pages behind one key, if the device can");

struct region {
	struct ib_mr *mr;
	struct scatterlist *sg;
	unsigned int pages;
	bool mapped;
};

struct lean_link {
	struct kref ref;
	struct list_head link; /* of the seed's, until nothing is left of the connection */
	spinlock_t lock; /* for going */
	bool going; /* down: nothing is announced any more */
	struct lean_seed *seed;
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct region *regions;
	unsigned int chunks;
	unsigned int chunk_pages;
	struct lean_table *table;
	struct ib_cqe cqe;
	struct completion done; /* of one work request */
	int status;
	struct work_struct announce;
	struct work_struct down;
	struct completion gone;
};

static void link_free(struct kref *ref)
{
	struct lean_link *link = container_of(ref, struct lean_link, ref);

	lean_seed_put(link->seed);
	kfree(link);
	atomic_long_dec(&lean_counts.connections);
}

static void link_put(struct lean_link *link)
{
	kref_put(&link->ref, link_free);
}

static void request_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct lean_link *link = container_of(wc->wr_cqe, struct lean_link, cqe);

	link->status = wc->status == IB_WC_SUCCESS ? 0 : -EIO;
	complete(&link->done);
}

/* One work request at a time. That a broken queue pair flushes it ends the wait. */
static int post_and_wait(struct lean_link *link, struct ib_send_wr *wr)
{
	int err;

	reinit_completion(&link->done);
	link->cqe.done = request_done;
	wr->wr_cqe = &link->cqe;
	wr->send_flags = IB_SEND_SIGNALED;
	err = ib_post_send(link->id->qp, wr, NULL);
	if (err)
		return err;
	wait_for_completion(&link->done);
	return link->status;
}

static int region_register(struct lean_link *link, unsigned int chunk)
{
	struct region *region = &link->regions[chunk];
	struct ib_device *device = link->id->device;
	unsigned long first = (unsigned long)chunk * link->chunk_pages;
	struct ib_reg_wr wr = {};
	struct page *page;
	unsigned int i;
	int count;

	region->pages = min_t(unsigned long, link->chunk_pages, link->seed->npages - first);
	region->sg = kvmalloc_array(region->pages, sizeof(*region->sg), GFP_KERNEL_ACCOUNT);
	if (!region->sg)
		return -ENOMEM;
	sg_init_table(region->sg, region->pages);
	for (i = 0; i < region->pages; i++) {
		page = link->seed->pages[first + i];
		sg_set_page(&region->sg[i], page ? page : ZERO_PAGE(0), PAGE_SIZE, 0);
	}
	region->mr = ib_alloc_mr(link->pd, IB_MR_TYPE_MEM_REG, link->chunk_pages);
	if (IS_ERR(region->mr)) {
		count = PTR_ERR(region->mr);
		region->mr = NULL;
		return count;
	}
	count = ib_dma_map_sg(device, region->sg, region->pages, DMA_TO_DEVICE);
	if (!count)
		return -EIO;
	region->mapped = true;
	if (ib_map_mr_sg(region->mr, region->sg, count, NULL, PAGE_SIZE) != count)
		return -EIO;
	ib_update_fast_reg_key(region->mr, region->mr->rkey + 1);
	wr.wr.opcode = IB_WR_REG_MR;
	wr.mr = region->mr;
	wr.key = region->mr->rkey;
	wr.access = IB_ACCESS_REMOTE_READ;
	return post_and_wait(link, &wr.wr);
}

static int send_table(struct lean_link *link, unsigned int first, unsigned int count)
{
	struct ib_device *device = link->id->device;
	struct lean_table *table = link->table;
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .num_sge = 1 };
	struct ib_sge sge = { .length = sizeof(*table), .lkey = link->pd->local_dma_lkey };
	unsigned int i;
	int err;

	memset(table, 0, sizeof(*table));
	table->magic = cpu_to_le32(LEAN_RDMA_MAGIC);
	table->version = cpu_to_le16(LEAN_RDMA_VERSION);
	table->page_shift = cpu_to_le16(PAGE_SHIFT);
	table->pages = cpu_to_le64(link->seed->npages);
	table->chunk_pages = cpu_to_le32(link->chunk_pages);
	table->chunks = cpu_to_le32(link->chunks);
	table->first = cpu_to_le32(first);
	table->count = cpu_to_le32(count);
	for (i = 0; i < count; i++) {
		struct region *region = &link->regions[first + i];

		table->chunk[i].address = cpu_to_le64(region->mr->iova);
		table->chunk[i].key = cpu_to_le32(region->mr->rkey);
		table->chunk[i].pages = cpu_to_le32(region->pages);
	}
	sge.addr = ib_dma_map_single(device, table, sizeof(*table), DMA_TO_DEVICE);
	if (ib_dma_mapping_error(device, sge.addr))
		return -EIO;
	wr.sg_list = &sge;
	err = post_and_wait(link, &wr);
	ib_dma_unmap_single(device, sge.addr, sizeof(*table), DMA_TO_DEVICE);
	return err;
}

static void link_down(struct lean_link *link)
{
	/* Once, as its work frees the link; disconnecting causes another event. */
	spin_lock(&link->lock);
	if (!link->going)
		queue_work(lean_wq, &link->down);
	link->going = true;
	spin_unlock(&link->lock);
}

/* When the connection stands: keys are made, and told. */
static void link_announce(struct work_struct *work)
{
	struct lean_link *link = container_of(work, struct lean_link, announce);
	unsigned int i, count;
	int err = 0;

	for (i = 0; i < link->chunks && !err; i++)
		err = region_register(link, i);
	for (i = 0; i < link->chunks && !err; i += count) {
		count = min_t(unsigned int, link->chunks - i, LEAN_CHUNKS_AT_ONCE);
		err = send_table(link, i, count);
	}
	if (err)
		link_down(link);
}

static void regions_free(struct lean_link *link)
{
	unsigned int i;

	for (i = 0; link->regions && i < link->chunks; i++) {
		struct region *region = &link->regions[i];

		if (region->mr)
			ib_dereg_mr(region->mr);
		if (region->mapped)
			ib_dma_unmap_sg(link->id->device, region->sg, region->pages,
					DMA_TO_DEVICE);
		kvfree(region->sg);
	}
	kvfree(link->regions);
	link->regions = NULL;
}

/* Everything of the device's, so that no key is good any more. */
static void link_release(struct lean_link *link)
{
	cancel_work_sync(&link->announce);
	regions_free(link);
	if (link->id->qp)
		rdma_destroy_qp(link->id);
	if (link->cq)
		ib_free_cq(link->cq);
	if (link->pd)
		ib_dealloc_pd(link->pd);
	kfree(link->table);
}

static void link_down_work(struct work_struct *work)
{
	struct lean_link *link = container_of(work, struct lean_link, down);

	rdma_disconnect(link->id);
	ib_drain_qp(link->id->qp);
	link_release(link);
	/* After this no event comes any more. */
	rdma_destroy_id(link->id);
	mutex_lock(&link->seed->links_lock);
	list_del_init(&link->link);
	mutex_unlock(&link->seed->links_lock);
	complete_all(&link->gone);
	link_put(link);
}

/* The seed's: nobody reads when this returns, and no new peer comes. */
void lean_links_drop(struct lean_seed *seed)
{
	struct lean_link *link;

	mutex_lock(&seed->links_lock);
	seed->closing = true;
	while (!list_empty(&seed->links)) {
		link = list_first_entry(&seed->links, struct lean_link, link);
		kref_get(&link->ref);
		mutex_unlock(&seed->links_lock);
		link_down(link);
		wait_for_completion(&link->gone);
		link_put(link);
		mutex_lock(&seed->links_lock);
	}
	mutex_unlock(&seed->links_lock);
}

static int link_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct lean_link *link = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		spin_lock(&link->lock);
		if (!link->going)
			queue_work(lean_wq, &link->announce);
		spin_unlock(&link->lock);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		link_down(link);
		break;
	default:
		break;
	}
	return 0;
}

static int link_setup(struct lean_link *link)
{
	struct ib_device *device = link->id->device;
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		/* One at a time, and what draining takes. */
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	link->chunk_pages = min(READ_ONCE(chunk_pages), device->attrs.max_fast_reg_page_list_len);
	if (!link->chunk_pages ||
	    !(device->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return -EOPNOTSUPP;
	link->chunks = DIV_ROUND_UP(link->seed->npages, link->chunk_pages);
	link->regions = kvcalloc(link->chunks, sizeof(*link->regions), GFP_KERNEL_ACCOUNT);
	link->table = kzalloc(sizeof(*link->table), GFP_KERNEL_ACCOUNT);
	if (!link->regions || !link->table)
		return -ENOMEM;
	link->pd = ib_alloc_pd(device, 0);
	if (IS_ERR(link->pd)) {
		link->pd = NULL;
		return -ENOMEM;
	}
	link->cq = ib_alloc_cq_any(device, link, 16, IB_POLL_WORKQUEUE);
	if (IS_ERR(link->cq)) {
		link->cq = NULL;
		return -ENOMEM;
	}
	attr.send_cq = link->cq;
	attr.recv_cq = link->cq;
	return rdma_create_qp(link->id, link->pd, &attr);
}

static int link_accept(struct rdma_cm_id *id, struct rdma_cm_event *event, struct lean_seed *seed)
{
	struct lean_link *link = kzalloc(sizeof(*link), GFP_KERNEL_ACCOUNT);
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	int err = -ENOMEM;

	if (!link) {
		lean_seed_put(seed);
		return err;
	}
	kref_init(&link->ref);
	atomic_long_inc(&lean_counts.connections);
	INIT_LIST_HEAD(&link->link);
	spin_lock_init(&link->lock);
	INIT_WORK(&link->announce, link_announce);
	INIT_WORK(&link->down, link_down_work);
	init_completion(&link->done);
	init_completion(&link->gone);
	link->seed = seed;
	link->id = id;
	id->context = link;
	id->event_handler = link_event;
	mutex_lock(&seed->links_lock);
	if (seed->closing)
		err = -EOWNERDEAD;
	else
		err = link_setup(link);
	if (!err) {
		param.responder_resources = min_t(int, event->param.conn.responder_resources,
						  id->device->attrs.max_qp_rd_atom);
		err = rdma_accept(id, &param);
	}
	if (!err)
		list_add(&link->link, &seed->links);
	mutex_unlock(&seed->links_lock);
	if (err) {
		/*
		 * Nothing was posted, and soft-RoCE never ends to drain a queue pair that it had
		 * no memory for. The id is destroyed by rdma_cm, as the handler of the request
		 * fails.
		 */
		link_release(link);
		link_put(link);
	}
	return err;
}

/* Of a listener: somebody wants to connect. An error refuses, and destroys the new id. */
static int listener_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	const struct lean_hello *hello = event->param.conn.private_data;
	struct lean_seed *seed;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	if (!hello || event->param.conn.private_data_len < sizeof(*hello) ||
	    le32_to_cpu(hello->magic) != LEAN_RDMA_MAGIC ||
	    le16_to_cpu(hello->version) != LEAN_RDMA_VERSION)
		return -EPROTO;
	seed = lean_token_take(hello->token);
	if (!seed)
		return -EACCES;
	return link_accept(id, event, seed);
}

static int listener_release(struct inode *inode, struct file *file)
{
	rdma_destroy_id(file->private_data);
	return 0;
}

static const struct file_operations listener_fops = {
	.owner = THIS_MODULE,
	.release = listener_release,
};

int lean_rdma_listen(void __user *user, size_t size)
{
	struct lean_seed_listen arg;
	struct sockaddr_storage address;
	struct rdma_cm_id *id;
	int err = lean_copy_in(&arg, sizeof(arg), user, size);

	if (!err)
		err = lean_copy_address(&address, arg.address, arg.length);
	if (err)
		return err;
	id = rdma_create_id(current->nsproxy->net_ns, listener_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	err = rdma_bind_addr(id, (struct sockaddr *)&address);
	if (!err)
		err = rdma_listen(id, arg.backlog ? arg.backlog : 16);
	if (!err)
		err = anon_inode_getfd("[lean-seed-listener]", &listener_fops, id,
				       O_RDWR | O_CLOEXEC);
	if (err < 0)
		rdma_destroy_id(id);
	return err;
}
