/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: librdmacm and libibverbs, loaded when somebody first wants to read by RDMA. A host may have
 * neither, and most have no adapter: then pages go by TCP, and nobody hears of it.
 */
#ifndef LR_FORKD_VERBS_H
#define LR_FORKD_VERBS_H

#include <rdma/rdma_cma.h>

#include "src/base/err.h"

/* Their headers call some functions by macros of the same name, which know no pointers. */
#undef ibv_get_device_list
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define VERBS_CM(X)                                                                                \
	X(rdma_create_event_channel)                                                               \
	X(rdma_destroy_event_channel)                                                              \
	X(rdma_create_id)                                                                          \
	X(rdma_destroy_id)                                                                         \
	X(rdma_bind_addr)                                                                          \
	X(rdma_resolve_addr)                                                                       \
	X(rdma_resolve_route)                                                                      \
	X(rdma_create_qp)                                                                          \
	X(rdma_destroy_qp)                                                                         \
	X(rdma_connect)                                                                            \
	X(rdma_listen)                                                                             \
	X(rdma_accept)                                                                             \
	X(rdma_reject)                                                                             \
	X(rdma_disconnect)                                                                         \
	X(rdma_get_cm_event)                                                                       \
	X(rdma_ack_cm_event)                                                                       \
	X(rdma_get_src_port)
#define VERBS_IB(X)                                                                                \
	X(ibv_fork_init)                                                                           \
	X(ibv_get_device_list)                                                                     \
	X(ibv_free_device_list)                                                                    \
	X(ibv_query_device)                                                                        \
	X(ibv_alloc_pd)                                                                            \
	X(ibv_dealloc_pd)                                                                          \
	X(ibv_reg_mr)                                                                              \
	X(ibv_reg_mr_iova)                                                                         \
	X(ibv_dereg_mr)                                                                            \
	X(ibv_create_comp_channel)                                                                 \
	X(ibv_destroy_comp_channel)                                                                \
	X(ibv_create_cq)                                                                           \
	X(ibv_destroy_cq)                                                                          \
	X(ibv_get_cq_event)                                                                        \
	X(ibv_ack_cq_events)

#define VERBS_MEMBER(name) __typeof__(name) *name;
struct verbs {
	VERBS_CM(VERBS_MEMBER)
	VERBS_IB(VERBS_MEMBER)
};
#undef VERBS_MEMBER

/* NULL: they are not there, or no adapter is. Tried once. */
const struct verbs *verbs_get(struct lr_err *err);
/* RDMA reads as InfiniBand and RoCE have them: with iWARP, memory that a reader gives for what it
 * reads could be written by others. */
bool verbs_are_right(const struct rdma_cm_id *id);

#endif
