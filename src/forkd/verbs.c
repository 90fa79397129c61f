/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see verbs.h. */
#define LR_ROOM "forkd"
#include "src/forkd/verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "src/base/str.h"

struct symbol {
	const char *name;
	size_t at;
};

#define VERBS_SYMBOL(name) {#name, offsetof(struct verbs, name)},
static const struct symbol of_cm[] = {VERBS_CM(VERBS_SYMBOL)};
static const struct symbol of_ib[] = {VERBS_IB(VERBS_SYMBOL)};

static struct verbs verbs;

static int load(const char *file, const struct symbol *v, size_t n, struct lr_err *err)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	/* The loader's own words: the file may be there, and memory or descriptors be short. */
	if (!library)
		return lr_refuse(err, ENOTSUP, "no RDMA: %s (Debian: %s)", dlerror(),
				 file[3] == 'r' ? "librdmacm1" : "libibverbs1, ibverbs-providers");
	for (size_t i = 0; i < n; i++) {
		void *f = dlsym(library, v[i].name);
		if (!f)
			return lr_refuse(err, ENOTSUP, "no RDMA: %s has no %s", file, v[i].name);
		memcpy((char *)&verbs + v[i].at, &f, sizeof(f));
	}
	return 0;
}

static int look_for_adapters(struct lr_err *err)
{
	int n = 0;

	/* The keeper is a fork: on kernels that would part memory from its adapter then, it gets
	 * none of that memory. */
	verbs.ibv_fork_init();
	struct ibv_device **v = verbs.ibv_get_device_list(&n);
	if (v)
		verbs.ibv_free_device_list(v);
	return v && n ? 0 : lr_refuse(err, ENODEV, "no RDMA: this host has no RDMA adapter");
}

const struct verbs *verbs_get(struct lr_err *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct lr_err why;
	static int result = 1;

	pthread_mutex_lock(&lock);
	if (result > 0) {
		result = load("librdmacm.so.1", of_cm, LR_ARRAY_SIZE(of_cm), &why);
		if (result == 0)
			result = load("libibverbs.so.1", of_ib, LR_ARRAY_SIZE(of_ib), &why);
		if (result == 0)
			result = look_for_adapters(&why);
	}
	if (result < 0)
		*err = why;
	pthread_mutex_unlock(&lock);
	return result < 0 ? NULL : &verbs;
}

bool verbs_are_right(const struct rdma_cm_id *id)
{
	return id->verbs && id->verbs->device->transport_type == IBV_TRANSPORT_IB;
}
