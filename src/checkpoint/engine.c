/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: which engines there are, and what is refused for all of them. */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"

/* The usual one first. */
static const struct lr_checkpoint_engine *const engines[] = {&lr_checkpoint_criu,
							     &lr_checkpoint_fork};

int lr_checkpoint_engine(const char *name, const struct lr_checkpoint_engine **ret,
			 struct lr_err *err)
{
	for (size_t i = 0; i < LR_ARRAY_SIZE(engines); i++)
		if (!name || lr_streq(engines[i]->name, name)) {
			*ret = engines[i];
			return 0;
		}
	return lr_refuse(err, EINVAL, "there is no engine \"%.32s\" to checkpoint with", name);
}

static int check_remote(const struct lr_checkpoint_opts *o, struct lr_err *err)
{
	if (!o->ticket && !o->ticket_from) {
		const char *alone = o->lease                  ? "--lease"
				    : o->forkd                ? "--forkd"
				    : o->background           ? "--background"
				    : o->prefetch || o->eager ? "--fetch"
							      : NULL;
		return alone ? lr_refuse(err, EINVAL, "%s goes with --remote", alone) : 0;
	}
	if (!o->engine || !lr_streq(o->engine, "fork"))
		return lr_refuse(err, EINVAL, "--remote goes with --engine=fork");
	if (o->image_path)
		return lr_refuse(err, EINVAL, "--remote contradicts --image-path");
	if (o->background && o->stop) {
		lr_refuse(err, EINVAL, "--background contradicts --stop");
		return lr_err_hint(
			err, "what is copied after the ticket is in the container until then");
	}
	return 0;
}

int lr_checkpoint_check(const struct lr_checkpoint_opts *o, struct lr_err *err)
{
	if (o->parent_path && o->parent_path[0] == '/') {
		lr_refuse(err, EINVAL, "--parent-path %.128s is absolute", o->parent_path);
		return lr_err_hint(err, "it counts from --image-path: ../NAME for a directory "
					"beside it");
	}
	if (o->stop && (o->leave_running || o->pre_dump))
		return lr_refuse(err, EINVAL, "--stop contradicts %s",
				 o->leave_running ? "--leave-running" : "--pre-dump");
	if (o->when_ready && !(o->engine && lr_streq(o->engine, "fork")))
		return lr_refuse(err, EINVAL, "--when-ready goes with --engine=fork or --remote");
	if (o->without_exec && (o->engine ? !lr_streq(o->engine, "fork") : !o->ticket))
		return lr_refuse(err, EINVAL, "--without-exec goes with --engine=fork");
	if (o->status_fd >= 0 && !o->lazy_pages)
		return lr_refuse(err, EINVAL, "--status-fd goes with --lazy-pages");
	if (o->tmpfs_bound && (o->engine ? !lr_streq(o->engine, "fork") : !o->ticket))
		return lr_refuse(err, EINVAL,
				 "--tmpfs-bytes and --tmpfs-files go with --engine=fork");
	if (o->with_changes && (o->engine ? !lr_streq(o->engine, "fork") : !o->ticket)) {
		lr_refuse(err, EINVAL, "--with-changes goes with --engine=fork");
		return lr_err_hint(err, "criu's images have none of the root's files");
	}
	if (o->changes_bound && !o->with_changes)
		return lr_refuse(err, EINVAL,
				 "--changes-bytes and --changes-files go with --with-changes");
	return check_remote(o, err);
}

bool lr_checkpoint_lives_on(const struct lr_checkpoint_engine *e,
			    const struct lr_checkpoint_opts *o)
{
	return o->pre_dump || (e->runs_on ? !o->stop : o->leave_running);
}
