/* SPDX-License-Identifier: Apache-2.0 */
/* cli: the rows of every verb, in the order of a container's life. */
#include <string.h>

#include "src/cli/commands.h"
#include "src/cli/table.h"

#define VERB(id_, name_, run_) .name = (name_), .id = LR_VERB_##id_, .run = (run_)
#define OPERANDS(min_, max_, operand_, text_)                                                      \
	.min = (min_), .max = (max_), .operand = LR_OPERAND_##operand_, .operands = (text_)

/* clang-format off */
const struct lr_cli_verb lr_cli_verbs[] = {
	{ VERB(RUN, "run", lr_cmd_run), OPERANDS(1, 1, NEW_ID, "CONTAINER"), .hidden = LR_HIDDEN_LATER,
	  .fail = 1, .summary = "create a container, start it and wait for its end",
	  .about = "CONTAINER is the name the new container gets. The exit status is the one of its\n"
		   "process, or 128 plus the number of the signal that ended it.\n"
		   "Without --bundle, CONTAINER may also be a directory that has a config.json. That is the\n"
		   "bundle then, and a name is made up. A word that could be a name (no slash, no dot in\n"
		   "front) is a directory only if the working directory has no config.json." },
	{ VERB(CREATE, "create", lr_cmd_create), OPERANDS(1, 1, NEW_ID, "CONTAINER"), .hidden = LR_HIDDEN_LATER,
	  .fail = 1, .summary = "create a container that waits for start",
	  .about = "CONTAINER is the name the new container gets. Namespaces, mounts and limits are set up;\n"
		   "the process of config.json is not executed before start." },
	{ VERB(START, "start", lr_cmd_start), OPERANDS(1, 1, ID, "CONTAINER"), .fail = 1,
	  .summary = "execute the process of a created container" },
	{ VERB(EXEC, "exec", lr_cmd_exec),
	  OPERANDS(1, LR_ANY_ARGS, ID, "CONTAINER COMMAND [ARGUMENT...]"), .hidden = LR_HIDDEN_FIRST,
	  .command = true, .own_opts_after = true, .fail = 255,
	  .summary = "execute another process in a running container",
	  .about = "Without COMMAND, --process names a file that holds the process as JSON. The exit status is\n"
		   "the one of the command, or 255 if it could not be executed." },
	{ VERB(STATE, "state", lr_cmd_state), OPERANDS(1, 1, ID, "CONTAINER"), .fail = 1,
	  .summary = "print the state of a container as JSON" },
	{ VERB(LIST, "list", lr_cmd_list), OPERANDS(0, 0, NONE, ""), .fail = 1,
	  .summary = "list the containers below --root" },
	{ VERB(PS, "ps", lr_cmd_ps), OPERANDS(1, LR_ANY_ARGS, ID, "CONTAINER [PS-OPTION...]"),
	  .command = true, .fail = 1, .summary = "list the processes of a container",
	  .about = "The table is made by ps(1), which gets the PS-OPTIONs (default: -ef). JSON is an array of\n"
		   "process ids as the host counts them." },
	{ VERB(EVENTS, "events", lr_cmd_events), OPERANDS(1, 1, ID, "CONTAINER"), .fail = 1,
	  .summary = "print stats at intervals, and out-of-memory events, as lines of JSON" },
	{ VERB(KILL, "kill", lr_cmd_kill), OPERANDS(1, 2, ID, "CONTAINER [SIGNAL]"), .fail = 1,
	  .summary = "send a signal to a container's init process",
	  .about = "SIGNAL is a number or a name with or without SIG; without it, TERM is sent." },
	{ VERB(PAUSE, "pause", lr_cmd_pause), OPERANDS(1, 1, ID, "CONTAINER"), .fail = 1,
	  .summary = "freeze every process of a container" },
	{ VERB(RESUME, "resume", lr_cmd_resume), OPERANDS(1, 1, ID, "CONTAINER"), .fail = 1,
	  .summary = "thaw a paused container" },
	{ VERB(UPDATE, "update", lr_cmd_update), OPERANDS(1, 1, ID, "CONTAINER"), .fail = 1,
	  .summary = "change the resource limits of a container",
	  .about = "What is not given stays as it is. BYTES may end in k, m, g, t or p." },
	{ VERB(MOUNTS, "mounts", lr_cmd_mounts), OPERANDS(3, 3, NONE, "add|remove CONTAINER FILE"),
	  .hidden = LR_HIDDEN_FIRST, .fail = 1, .summary = "mount into, or out of, a running container",
	  .about = "FILE (-: standard input) holds a list of mounts as in config.json, or an object that has\n"
		   "one. For remove only their destinations count. (An experiment of crun's.)" },
	{ VERB(DELETE, "delete", lr_cmd_delete), OPERANDS(1, 1, ID, "CONTAINER"), .fail = 1,
	  .summary = "remove a stopped container and what it held",
	  .about = "With --force, a command at work on the container, as a checkpoint, has ten seconds to end; then\n"
		   "what runs in the container is killed. A command that has not ended after another twenty is named." },
	{ VERB(CHECKPOINT, "checkpoint", lr_cmd_checkpoint), OPERANDS(1, 1, ID, "CONTAINER"), .fail = 1,
	  .summary = "save the state of a running container",
	  .about = "The container is deleted when it is saved, unless --leave-running or --pre-dump is given; with\n"
		   "--engine=fork it runs on, unless --stop is. Without --image-path, the images go to the directory\n"
		   "`checkpoint`. Nobody else may be able to write to it. With --remote nothing is written to a disk:\n"
		   "lean-forkd(8) holds the container's state for other hosts, and whoever has the ticket that is\n"
		   "printed may continue it." },
	{ VERB(RESTORE, "restore", lr_cmd_restore), OPERANDS(1, 1, NEW_ID, "CONTAINER"), .hidden = LR_HIDDEN_FIRST,
	  .fail = 1, .summary = "continue a container that was saved",
	  .about = "CONTAINER is the name it gets, which may be another one. Its root, bind mounts, cgroup, limits\n"
		   "and hooks are those of --bundle; its processes are those of --image-path, or of --remote, whose\n"
		   "memory comes by this host's lean-forkd(8)." },
	{ VERB(SEED, "seed", lr_cmd_seed), OPERANDS(1, 2, NONE, "list|children|inspect|extend|rm [SEED]"), .fail = 1,
	  .summary = "the seeds that lean-forkd holds, and what is in one",
	  .about = "list shows the seeds of this host's lean-forkd(8). children shows whose memory comes by it, and what came for\n"
		   "the last ones that are over. inspect ID shows one of them, as JSON. inspect SEED\n"
		   "shows what is in a seed, as JSON: SEED is the directory of checkpoint --engine=fork, or a ticket, or\n"
		   "file:PATH or env:NAME, where the ticket is. extend ID begins a lease anew, with --lease one of that\n"
		   "length. rm ID revokes a seed: no more of its memory is sent, and a child that needs some ends." },
	{ VERB(POOL, "pool", lr_cmd_pool), OPERANDS(1, 1, NONE, "status|warm|drain"), .fail = 1,
	  .summary = "what the lean profile keeps ready for containers",
	  .about = "status lists it: slots that are free, used, or lost by a runtime that was killed.\n"
		   "warm makes slots ready for --bundle, which its first containers would otherwise wait for.\n"
		   "drain removes all that no container uses, down to the last mount and control group." },
	{ VERB(SPEC, "spec", lr_cmd_spec), OPERANDS(0, 0, NONE, ""), .fail = 1,
	  .summary = "write a config.json to start from",
	  .about = "An existing file is never overwritten." },
	{ VERB(FEATURES, "features", lr_cmd_features), OPERANDS(0, 0, NONE, ""), .fail = 1,
	  .summary = "print what this runtime supports, as JSON" },
	{ VERB(HELP, "help", lr_cmd_help), OPERANDS(0, 1, VERB, "[COMMAND]"), .fail = 1,
	  .summary = "show the commands, or the options of one" },
};
/* clang-format on */

const size_t lr_cli_n_verbs = sizeof(lr_cli_verbs) / sizeof(lr_cli_verbs[0]);

const struct lr_cli_verb *lr_cli_verb_find(const char *name)
{
	for (size_t i = 0; i < lr_cli_n_verbs; i++)
		if (strcmp(lr_cli_verbs[i].name, name) == 0)
			return &lr_cli_verbs[i];
	return NULL;
}
