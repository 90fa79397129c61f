/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole configurations. data/rich.json holds every property of runtime-spec 1.3, in the form that
 * the encoder gives it, so encoding must give back its bytes.
 */
#include "libocispec/ocispec.h"
#include "libocispec/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/test.h"

static struct lr_err err;

static int decode(const char *text, size_t len, struct lr_arena *a, const struct oci_config **c)
{
	memset(&err, 0, sizeof(err));
	return oci_config_decode(text, len, a, c, &err);
}

static char *load(struct lr_arena *a, const char *path, size_t *len)
{
	char *text = NULL;

	if (oci_read_file(AT_FDCWD, path, a, &text, len, &err) < 0) {
		printf("# %s\n", err.msg);
		return NULL;
	}
	return text;
}

TEST(rich_values)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct oci_config *c;
	size_t len;
	char *text = load(a, DATA "/rich.json", &len);

	REQUIRE(text);
	REQUIRE(decode(text, len, a, &c) == 0);
	CHECK_STR(c->oci_version, "1.3.0-rc.1+test");
	const struct oci_process *p = c->process;
	CHECK(p->terminal && p->no_new_privileges);
	CHECK_INT(p->console_size->height, 25);
	CHECK_INT(p->user.gid, UINT32_MAX);
	CHECK_INT(*p->user.umask, 18);
	CHECK_INT(p->user.additional_gids.n, 4);
	CHECK_STR(p->args.v[2], "echo \"gr\xc3\xbc\xc3\x9f"
				"e\" \\ /\t\n");
	CHECK(p->args.v[3] == NULL);
	CHECK(p->rlimits.v[0].hard == UINT64_MAX && p->rlimits.v[0].soft == 1024);
	CHECK_INT(*p->oom_score_adj, -1000);
	CHECK_INT(p->scheduler->nice, -20);
	CHECK_INT(p->scheduler->deadline, 20000000);
	CHECK_STR(p->io_priority->class, "IOPRIO_CLASS_BE");
	CHECK_STR(p->exec_cpu_affinity->initial, "0-3,7");
	CHECK_INT(c->mounts.v[1].gid_mappings.v[0].size, 65536);
	CHECK(c->mounts.v[0].options.v == NULL);
	CHECK_INT(*c->hooks->prestart.v[0].timeout, 30);
	CHECK(c->hooks->poststop.v[0].timeout == NULL);
	CHECK_STR(c->annotations.v[1].key, "z");

	const struct oci_linux *l = c->linux_;
	CHECK_INT(l->time_offsets->boottime->secs, -3600);
	CHECK_INT(l->time_offsets->boottime->nanosecs, 999999999);
	CHECK_INT(l->time_offsets->monotonic->secs, 86400);
	CHECK_STR(l->net_devices.v[0].host_name, "eth0");
	CHECK_STR(l->net_devices.v[0].name, "container_eth0");
	CHECK_STR(l->net_devices.v[1].host_name, "ens4");
	CHECK(l->net_devices.v[1].name == NULL);
	CHECK_STR(l->memory_policy->mode, "MPOL_INTERLEAVE");
	CHECK_STR(l->memory_policy->flags.v[0], "MPOL_F_STATIC_NODES");
	CHECK_STR(l->intel_rdt->schemata.v[1], "MB:0=20;1=70");
	CHECK(l->intel_rdt->enable_monitoring);
	CHECK_STR(l->seccomp->listener_path, "/run/agent.sock");
	CHECK_INT(*l->seccomp->syscalls.v[1].errno_ret, 0);
	CHECK(l->seccomp->syscalls.v[0].errno_ret == NULL);
	CHECK(l->seccomp->syscalls.v[1].args.v[0].value == UINT64_MAX);
	CHECK_INT(l->seccomp->syscalls.v[1].args.v[1].value_two, 8);

	const struct oci_resources *r = l->resources;
	CHECK(r->pids->limit && *r->pids->limit == 0);
	CHECK(*r->memory->check_before_update && !*r->memory->disable_oom_killer);
	CHECK_INT(*r->memory->swap, -1);
	CHECK_INT(*r->cpu->idle, 0);
	CHECK_INT(*r->cpu->burst, 1000000);
	CHECK_INT(*r->block_io->weight, 10);
	CHECK(r->block_io->weight_device.v[1].leaf_weight == NULL);
	CHECK(r->block_io->throttle_read_iops_device.v[0].rate == UINT64_MAX);
	CHECK_STR(r->hugepage_limits.v[1].page_size, "64KB");
	CHECK_INT(r->network->priorities.v[0].priority, 500);
	CHECK_STR(r->rdma.v[0].device, "mlx5_1");
	CHECK_INT(*r->rdma.v[0].hca_handles, 3);
	CHECK(r->rdma.v[1].hca_handles == NULL);
	CHECK_STR(r->unified.v[1].value, "1073741824");
	CHECK(r->devices.v[0].type == NULL && r->devices.v[0].major == NULL);
	CHECK_INT(*r->devices.v[2].major, -1);
}

TEST(rich_round_trip)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct oci_config *c, *again;
	size_t len, len2;
	char *text = load(a, DATA "/rich.json", &len);

	REQUIRE(text && len > 0 && text[len - 1] == '\n');
	REQUIRE(decode(text, len, a, &c) == 0);
	text[--len] = '\0';
	CHECK_STR(oci_config_encode(c, true, a, &len2), text);
	CHECK_INT(len2, len);

	char *compact = oci_config_encode(c, false, a, &len2);
	REQUIRE(compact);
	REQUIRE(decode(compact, len2, a, &again) == 0);
	CHECK_STR(oci_config_encode(again, false, a, NULL), compact);
	CHECK_STR(oci_config_encode(again, true, a, NULL), text);
}

/* Which rows of the tables have a value somewhere in the object. */
struct coverage {
	const struct oci_field *rows[512];
	bool hit[512];
	size_t n;
};

static void collect(struct coverage *cov, const struct oci_type *type)
{
	for (unsigned i = 0; i < type->n; i++) {
		cov->rows[cov->n++] = &type->fields[i];
		if (type->fields[i].type)
			collect(cov, type->fields[i].type);
	}
}

static void mark(struct coverage *cov, const struct oci_type *type, const char *object)
{
	static const char zero[64];

	for (unsigned i = 0; i < type->n; i++) {
		const struct oci_field *f = &type->fields[i];
		const char *at = object + f->offset;
		struct {
			const char *v;
			size_t n;
		} list;
		size_t size = f->kind == OCI_KIND_BOOL                             ? 1
			      : f->kind == OCI_KIND_U16                            ? 2
			      : f->kind == OCI_KIND_U32 || f->kind == OCI_KIND_I32 ? 4
										   : 8;
		bool hit = f->kind == OCI_KIND_OBJ ||
			   memcmp(at, zero, f->flags & OCI_PTR ? sizeof(void *) : size) != 0;

		if (f->flags & OCI_PTR) {
			memcpy(&at, at, sizeof(at));
			hit = at != NULL;
		}
		for (size_t k = 0; hit && k < cov->n; k++)
			if (cov->rows[k] == f)
				cov->hit[k] = true;
		if (!hit || !f->type)
			continue;
		if (f->kind == OCI_KIND_OBJ) {
			mark(cov, f->type, at);
			continue;
		}
		memcpy(&list, at, sizeof(list));
		for (size_t k = 0; k < list.n; k++)
			mark(cov, f->type, list.v + k * f->type->size);
	}
}

TEST(rich_has_every_property)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	static struct coverage cov;
	const struct oci_config *c;
	size_t len;
	char *text = load(a, DATA "/rich.json", &len);

	REQUIRE(text);
	REQUIRE(decode(text, len, a, &c) == 0);
	collect(&cov, &oci_config_type);
	mark(&cov, &oci_config_type, (const char *)c);
	CHECK(cov.n > 150);
	for (size_t i = 0; i < cov.n; i++) {
		if (!cov.hit[i])
			printf("# data/rich.json lacks %s\n", cov.rows[i]->name);
		CHECK(cov.hit[i]);
	}
}

TEST(truncated_anywhere)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	size_t len;
	char *text = load(a, DATA "/rich.json", &len);
	int bad = 0;

	REQUIRE(text);
	for (size_t n = 0; n < len - 2; n++) {
		LR_CLEANUP_ARENA struct lr_arena *b = lr_arena_new();
		const struct oci_config *c = NULL;
		/* Of exactly n bytes, so that the sanitizer sees a read beyond. */
		char *cut = malloc(n ? n : 1);

		REQUIRE(cut);
		memcpy(cut, text, n);
		bad += decode(cut, n, b, &c) != -EINVAL || c || !err.msg[0];
		free(cut);
	}
	CHECK_INT(bad, 0);
}

/* Whatever a byte becomes, the decoder answers without crashing and says why it refuses. */
TEST(mutated_anywhere)
{
	static const char bytes[] = {'\0', '"', '{', '}', '[',  ']',    ',',    ':',    '\\',
				     '-',  '0', 'x', ' ', '\n', '\x7f', '\x80', '\xc3', '\xff'};
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	size_t len;
	char *text = load(a, DATA "/rich.json", &len);
	int bad = 0;

	REQUIRE(text);
	for (size_t n = 0; n < len; n += 7) {
		char was = text[n];

		for (size_t i = 0; i < sizeof(bytes); i++) {
			LR_CLEANUP_ARENA struct lr_arena *b = lr_arena_new();
			const struct oci_config *c = NULL;

			text[n] = bytes[i];
			int rc = decode(text, len, b, &c);
			bad += rc == 0 ? !c : (rc != -EINVAL || c || !err.msg[0]);
		}
		text[n] = was;
	}
	CHECK_INT(bad, 0);
}

TEST(other_platforms_are_skipped_but_checked)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct oci_config *c;
	const char *head = "{\"ociVersion\":\"1.0.0\",\"root\":{\"path\":\"r\"},";
	static const char *const platforms[] = {"windows", "solaris", "vm", "zos"};
	char text[256];

	for (size_t i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "%s\"%s\":{\"a\":[{\"b\":1}],\"linux\":3}}", head,
			 platforms[i]);
		CHECK_INT(decode(text, strlen(text), a, &c), 0);
		snprintf(text, sizeof(text), "%s\"%s\":{\"a\":[{\"b\":1,\"b\":2}]}}", head,
			 platforms[i]);
		CHECK_INT(decode(text, strlen(text), a, &c), -EINVAL);
		CHECK_HAS(err.path, ".a[0].b");
		snprintf(text, sizeof(text), "%s\"%s\":{},\"%s\":{}}", head, platforms[i],
			 platforms[i]);
		CHECK_INT(decode(text, strlen(text), a, &c), -EINVAL);
	}
}

TEST(messages)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct oci_config *c;
	const char *text = "{\"ociVersion\":\"1.0.0\",\"process\":{\"args\":[\"a\",1]}}";
	char line[1024];

	CHECK_INT(decode(text, strlen(text), a, &c), -EINVAL);
	CHECK_STR(err.room, "config.json");
	CHECK_STR(err.path, "process.args[1]");
	CHECK_STR(err.msg, "expected a string, got a number");
	CHECK_HAS(lr_err_format(&err, line, sizeof(line)), "process.args[1]");
	text = "{\"ociVersion\":\"1.0.0\",\"process\":{\"rlimits\":[{\"type\":\"\",\"soft\":1,"
	       "\"hard\":1},{\"type\":\"\",\"hard\":1,\"soft\":-1}]}}";
	CHECK_INT(decode(text, strlen(text), a, &c), -EINVAL);
	CHECK_STR(err.path, "process.rlimits[1].soft");
	/* Without an error structure it must work, too. */
	CHECK_INT(oci_config_decode(text, strlen(text), a, &c, NULL), -EINVAL);
	CHECK_INT(oci_config_decode("{\"ociVersion\":\"2.0.0\"}", 22, a, &c, NULL), -EINVAL);
	CHECK_INT(oci_config_decode("{", 1, a, &c, NULL), -EINVAL);
}

TEST(too_large)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct oci_config *c;
	size_t len = OCI_CONFIG_MAX + 1;
	char *text = malloc(len);

	REQUIRE(text);
	memset(text, ' ', len);
	memcpy(text, "{\"ociVersion\":\"1.0.0\",\"root\":{\"path\":\"/\"}}", 42);
	CHECK_INT(decode(text, len - 1, a, &c), 0);
	CHECK_INT(decode(text, len, a, &c), -EFBIG);
	CHECK_HAS(err.msg, "16777217");
	free(text);
}

TEST(no_processes_before_1_3_was_no_limit)
{
	static const struct {
		const char *version;
		int64_t limit;
	} cases[] = {{"1.0.0", -1}, {"1.2.9", -1}, {"1.3.0", 0}, {"1.10.0", 0}, {"1.0.2-dev", -1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
		const struct oci_config *c;
		char text[200];
		int len = snprintf(text, sizeof(text),
				   "{\"ociVersion\":\"%s\",\"root\":{\"path\":\"/\"},"
				   "\"linux\":{\"resources\":{\"pids\":{\"limit\":0}}}}",
				   cases[i].version);
		CHECK_INT(oci_config_decode(text, (size_t)len, a, &c, &err), 0);
		CHECK_INT(*c->linux_->resources->pids->limit, cases[i].limit);
	}
}

TEST(processes_and_resources)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct oci_process *p;
	const struct oci_resources *r;
	const char *text = "{\"args\":[\"sh\"],\"cwd\":\"/\",\"user\":{\"uid\":1}}";

	CHECK_INT(oci_process_decode(text, strlen(text), a, &p, &err), 0);
	CHECK_STR(oci_process_encode(p, a, NULL),
		  "{\"user\":{\"uid\":1,\"gid\":0},\"args\":[\"sh\"],\"cwd\":\"/\"}");
	memset(&err, 0, sizeof(err));
	text = "{\"args\":[\"sh\"],\"cwd\":\"rel\"}";
	CHECK_INT(oci_process_decode(text, strlen(text), a, &p, &err), -EINVAL);
	CHECK_STR(err.path, "cwd");
	CHECK_STR(err.room, "process.json");

	/* What `docker update --memory` sends. */
	text = "{\"memory\":{\"limit\":1048576},\"cpu\":{},\"blockIO\":{\"weight\":0},"
	       "\"pids\":{\"limit\":-1}}";
	CHECK_INT(oci_resources_decode(text, strlen(text), a, &r, &err), 0);
	CHECK_INT(*r->memory->limit, 1048576);
	CHECK(r->cpu && !r->cpu->shares && *r->block_io->weight == 0 && *r->pids->limit == -1);
	memset(&err, 0, sizeof(err));
	text = "{\"memory\":{\"limit\":\"1m\"}}";
	CHECK_INT(oci_resources_decode(text, strlen(text), a, &r, &err), -EINVAL);
	CHECK_STR(err.path, "memory.limit");
}

TEST(files)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	char dir[] = "/tmp/ocispec-test-XXXXXX", *text = NULL;
	size_t len = 0;

	REQUIRE(mkdtemp(dir));
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(fd >= 0);
	CHECK_INT(oci_read_file(fd, "none", a, &text, &len, &err), -ENOENT);
	CHECK_INT(oci_read_file(AT_FDCWD, dir, a, &text, &len, &err), -EINVAL);
	CHECK_HAS(err.msg, "not a regular file");
	CHECK_INT(mkfifoat(fd, "fifo", 0600), 0);
	CHECK_INT(oci_read_file(fd, "fifo", a, &text, &len, &err), -EINVAL);
	CHECK(text == NULL);
	int file = openat(fd, "f", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	REQUIRE(file >= 0);
	CHECK_INT(oci_read_file(fd, "f", a, &text, &len, &err), 0);
	CHECK_INT(len, 0);
	CHECK_STR(text, "");
	CHECK_INT(write(file, "{}\n", 3), 3);
	CHECK_INT(oci_read_file(fd, "f", a, &text, &len, &err), 0);
	CHECK_INT(len, 3);
	CHECK_STR(text, "{}\n");
	CHECK_INT(ftruncate(file, OCI_CONFIG_MAX + 1), 0);
	CHECK_INT(oci_read_file(fd, "f", a, &text, &len, &err), -EFBIG);
	close(file);
	unlinkat(fd, "f", 0);
	unlinkat(fd, "fifo", 0);
	close(fd);
	rmdir(dir);
}
