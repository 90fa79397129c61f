/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser takes and refuses, and the table it works from. */
#include <errno.h>

#include "src/base/str.h"
#include "src/cli/args.h"
#include "src/cli/help.h"
#include "tests/unit/test.h"

static struct lr_cli_args args;
static struct lr_err err;

/* Parses a NULL-terminated list of words after the program's name. */
static int parse(const char *first, ...)
{
	static const char *argv[32];
	int argc = 0;
	va_list ap;

	lr_cli_args_free(&args);
	lr_err_clear(&err);
	argv[argc++] = "lean-runtime";
	va_start(ap, first);
	for (const char *w = first; w; w = va_arg(ap, const char *))
		argv[argc++] = w;
	va_end(ap);
	argv[argc] = NULL;
	return lr_cli_parse(argc, (char **)argv, &args, &err);
}

static const char *message(void)
{
	static char text[1024];
	return lr_err_format(&err, text, sizeof(text));
}

TEST(forms_of_one_option)
{
	CHECK_INT(parse("run", "--bundle", "/b", "x", NULL), 0);
	CHECK_STR(lr_cli_str(&args, LR_OPT_BUNDLE), "/b");
	CHECK_INT(parse("run", "--bundle=/b", "x", NULL), 0);
	CHECK_STR(lr_cli_str(&args, LR_OPT_BUNDLE), "/b");
	CHECK_INT(parse("run", "-bundle", "/b", "x", NULL), 0);
	CHECK_STR(lr_cli_str(&args, LR_OPT_BUNDLE), "/b");
	CHECK_INT(parse("run", "-bundle=/b=c", "x", NULL), 0);
	CHECK_STR(lr_cli_str(&args, LR_OPT_BUNDLE), "/b=c");
	CHECK_INT(parse("run", "-b", "/b", "x", NULL), 0);
	CHECK_STR(lr_cli_str(&args, LR_OPT_BUNDLE), "/b");
	CHECK_INT(parse("run", "-b=", "x", NULL), 0);
	CHECK_STR(lr_cli_str(&args, LR_OPT_BUNDLE), "");
	CHECK_STR(lr_cli_id(&args), "x");
}

TEST(options_on_either_side_of_the_id)
{
	CHECK_INT(parse("create", "-b", "/1", "x", "--pid-file", "p", "-b", "/2", NULL), 0);
	CHECK_STR(lr_cli_str(&args, LR_OPT_BUNDLE), "/2");
	CHECK_STR(lr_cli_str(&args, LR_OPT_PID_FILE), "p");
	CHECK_INT(args.n_operands, 1);
	CHECK_INT(parse("kill", "x", "9", "--all", NULL), 0);
	CHECK_INT(args.n_operands, 2);
	CHECK(lr_cli_flag(&args, LR_OPT_ALL));
	CHECK_INT(parse("kill", "--", "-x", "-9", NULL), 0);
	CHECK_STR(args.operands[0], "-x");
	CHECK_STR(args.operands[1], "-9");
	CHECK(!args.operands[2]);
}

TEST(flags_and_their_values)
{
	CHECK_INT(parse("restore", "--detach", "-no-subreaper", "x", NULL), 0);
	CHECK(lr_cli_flag(&args, LR_OPT_NO_SUBREAPER));
	CHECK(lr_cli_flag(&args, LR_OPT_DETACH));
	CHECK_INT(parse("run", "--detach=false", "x", NULL), 0);
	CHECK(!lr_cli_flag(&args, LR_OPT_DETACH));
	CHECK(lr_cli_count(&args, LR_OPT_DETACH));
	CHECK_INT(parse("run", "-d=T", "x", NULL), 0);
	CHECK(lr_cli_flag(&args, LR_OPT_DETACH));
	CHECK_INT(parse("run", "-d=yes", "x", NULL), -EINVAL);
	CHECK_HAS(message(), "invalid boolean value");
	CHECK_INT(parse("exec", "-td", "x", "sh", NULL), 0);
	CHECK(lr_cli_flag(&args, LR_OPT_TTY) && lr_cli_flag(&args, LR_OPT_DETACH));
	CHECK_INT(parse("exec", "-tdu0:0", "-eA=1", "-tu", "7", "x", "sh", NULL), 0);
	CHECK_INT(args.n_values, 6);
	CHECK_STR(args.values[2].text, "0:0");
	CHECK_STR(args.values[3].text, "A=1");
	CHECK_STR(args.values[5].text, "7");
	CHECK_INT(parse("exec", "-tdu", NULL), -EINVAL);
}

TEST(words_and_their_numbers)
{
	CHECK_INT(parse("restore", "--fetch=eager", "x", NULL), 0);
	CHECK_INT(parse("restore", "--fetch", "prefetch:64", "x", NULL), 0);
	CHECK_STR(lr_cli_str(&args, LR_OPT_FETCH), "prefetch:64");
	static const char *const none[] = {
		"--fetch=prefetch:",
		"--fetch=prefetch:0",
		"--fetch=prefetch:x",
		"--fetch=prefetch:1 eager",
		"--fetch=eager:1",
		"--fetch=:1",
		"--fetch=soon",
		"--fetch=prefetch:4294967296",
		"--fetch=a-word-that-is-longer-than-any-that-there-is:1"};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		CHECK_INT(parse("restore", none[i], "x", NULL), -EINVAL);
		CHECK_HAS(message(), "invalid value");
	}
}

TEST(exec_leaves_the_command_alone)
{
	CHECK_INT(parse("exec", "-e", "A=1", "-e", "B=2", "x", "-t", "ls", "-e", "--cwd", NULL), 0);
	CHECK_INT(args.n_operands, 4);
	CHECK_STR(args.operands[1], "ls");
	CHECK_STR(args.operands[3], "--cwd");
	CHECK(lr_cli_flag(&args, LR_OPT_TTY));
	size_t at = 0;
	CHECK_STR(lr_cli_next(&args, LR_OPT_ENV, &at), "A=1");
	CHECK_STR(lr_cli_next(&args, LR_OPT_ENV, &at), "B=2");
	CHECK(!lr_cli_next(&args, LR_OPT_ENV, &at));
	CHECK_INT(parse("exec", "x", "--", "-ls", "--", NULL), 0);
	CHECK_STR(args.operands[1], "-ls");
	CHECK_STR(args.operands[2], "--");
	CHECK_INT(parse("exec", "x", "-e", "-not-an-option", "sh", NULL), 0);
	CHECK_STR(lr_cli_str(&args, LR_OPT_ENV), "-not-an-option");
}

TEST(ps_hands_its_tail_on)
{
	CHECK_INT(parse("ps", "--format", "json", "x", "-f", "--help", NULL), 0);
	CHECK_INT(args.n_operands, 3);
	CHECK_STR(args.operands[2], "--help");
	CHECK(!lr_cli_flag(&args, LR_OPT_HELP));
}

TEST(refusals)
{
	CHECK_INT(parse("--foo=1", "list", NULL), -EINVAL);
	CHECK_HAS(message(), "flag provided but not defined: -foo;");
	CHECK_INT(err.exit_code, 1);
	CHECK_INT(parse("run", "-zoo", "x", NULL), -EINVAL);
	CHECK_HAS(message(), "see 'lean-runtime run --help'");
	CHECK_INT(parse("state", "--root", "/r", "x", NULL), -EINVAL);
	CHECK_HAS(message(), "--root belongs in front of 'state'");
	CHECK_INT(parse("restore", "--lsm-mount-context", NULL), -EINVAL);
	CHECK_HAS(message(), "flag needs an argument: --lsm-mount-context");
	CHECK_INT(parse("run", "--preserve-fds", "many", "x", NULL), -EINVAL);
	CHECK_INT(parse("list", "-f", "yaml", NULL), -EINVAL);
	CHECK_HAS(message(), "invalid format option");
	CHECK_INT(parse("list", "-f", "table json", NULL), -EINVAL);
	CHECK_INT(parse("list", "-f", "", NULL), -EINVAL);
	CHECK_INT(parse("frobnicate", NULL), -EINVAL);
	CHECK_HAS(message(), "unknown command");
	CHECK_INT(parse("run", "--=x", "y", NULL), -EINVAL);
}

TEST(what_was_read_before_an_error_is_kept)
{
	CHECK_INT(parse("--log", "/l", "--log-format=json", "run", "--foo", NULL), -EINVAL);
	CHECK_STR(lr_cli_str(&args, LR_OPT_LOG), "/l");
	CHECK_STR(lr_cli_str(&args, LR_OPT_LOG_FORMAT), "json");
}

TEST(number_of_operands)
{
	CHECK_INT(parse("create", NULL), 0);
	CHECK_INT(lr_cli_check_operands(&args, &err), -EINVAL);
	CHECK_HAS(message(), "\"create\" requires exactly 1 argument(s)");
	CHECK_INT(parse("create", "a", "b", NULL), 0);
	CHECK_INT(lr_cli_check_operands(&args, &err), -EINVAL);
	CHECK_INT(parse("kill", "a", NULL), 0);
	CHECK_INT(lr_cli_check_operands(&args, &err), 0);
	CHECK_INT(parse("kill", "a", "b", "c", NULL), 0);
	CHECK_INT(lr_cli_check_operands(&args, &err), -EINVAL);
	CHECK_HAS(message(), "maximum of 2");
}

TEST(globals)
{
	CHECK_INT(parse("--rootless=true", "--systemd-cgroup", "list", NULL), 0);
	CHECK_INT(lr_cli_rootless(&args), LR_CLI_TRUE);
	CHECK_STR(lr_cli_cgroup_manager(&args), "systemd");
	CHECK_INT(parse("--rootless", "auto", "spec", "--rootless", NULL), 0);
	CHECK_INT(lr_cli_rootless(&args), LR_CLI_AUTO);
	CHECK(lr_cli_flag(&args, LR_OPT_ROOTLESS));
	CHECK_INT(parse("--systemd-cgroup=false", "--cgroup-manager", "disabled", "list", NULL), 0);
	CHECK_STR(lr_cli_cgroup_manager(&args), "disabled");
	CHECK_INT(parse("list", NULL), 0);
	CHECK(!lr_cli_cgroup_manager(&args));
	CHECK_INT(parse("-V", NULL), 0);
	CHECK(lr_cli_flag(&args, LR_OPT_VERSION));
	CHECK(!args.verb);
}

TEST(root_directory)
{
	char root[4096];

	CHECK_INT(parse("--root", "/a/b", "list", NULL), 0);
	CHECK_INT(lr_cli_root(&args, root, sizeof(root), &err), 0);
	CHECK_STR(root, "/a/b");
	CHECK_INT(parse("--root", "c", "list", NULL), 0);
	CHECK_INT(lr_cli_root(&args, root, sizeof(root), &err), 0);
	CHECK(root[0] == '/' && lr_has_suffix(root, "/c"));
	CHECK_INT(parse("--root=", "list", NULL), 0);
	CHECK_INT(lr_cli_root(&args, root, sizeof(root), &err), -EINVAL);
	CHECK_INT(parse("--root", "/aaaaaaaaa", "list", NULL), 0);
	CHECK_INT(lr_cli_root(&args, root, 8, &err), -ENAMETOOLONG);
}

TEST(table_is_sound)
{
	for (size_t v = 0; v <= lr_cli_n_verbs; v++) {
		uint8_t id = v ? lr_cli_verbs[v - 1].id : LR_VERB_GLOBAL;
		for (size_t i = 0; i < lr_cli_n_opts; i++) {
			const struct lr_cli_opt *o = &lr_cli_opts[i];
			CHECK(i == 0 || strcmp(lr_cli_opts[i - 1].name, o->name) <= 0);
			CHECK((o->kind == LR_KIND_FLAG) == !o->value);
			CHECK((o->kind == LR_KIND_CHOICE) == (o->choices != NULL));
			if (!lr_cli_takes(o, id))
				continue;
			/* Found by its names: so no other option of the verb has them. */
			CHECK(lr_cli_opt_find(id, o->name, strlen(o->name)) == o);
			CHECK(!o->letter || lr_cli_opt_letter(id, o->letter) == o);
		}
	}
	for (size_t i = 0; i < lr_cli_n_verbs; i++)
		CHECK(lr_cli_verb_find(lr_cli_verbs[i].name) == &lr_cli_verbs[i]);
}

TEST(help_names_every_option)
{
	for (size_t v = 0; v < lr_cli_n_verbs; v++) {
		LR_CLEANUP_BUF struct lr_cli_buf out = {0};
		lr_cli_help(&lr_cli_verbs[v], &out);
		REQUIRE(out.data);
		for (size_t i = 0; i < lr_cli_n_opts; i++) {
			char name[64];
			snprintf(name, sizeof(name), "--%s", lr_cli_opts[i].name);
			if (lr_cli_takes(&lr_cli_opts[i], lr_cli_verbs[v].id) &&
			    !lr_cli_opts[i].hidden)
				CHECK_HAS(out.data, name);
		}
	}
}

TEST(version_has_the_word_once)
{
	LR_CLEANUP_BUF struct lr_cli_buf out = {0};

	lr_cli_version(&out);
	REQUIRE(out.data);
	const char *first = strstr(out.data, "version");
	CHECK(first && first < strchr(out.data, '\n'));
	CHECK(first && !strstr(first + 1, "version"));
	CHECK_HAS(out.data, "\ncommit: ");
	CHECK_HAS(out.data, "\nspec: 1.3.0\n");
}
