/* SPDX-License-Identifier: Apache-2.0 */
/* cli: completions for bash, zsh and fish. */
#include <string.h>

#include "src/cli/doc.h"
#include "src/cli/table.h"

#define GENERATED " completions of " LR_CLI_NAME "; generated from its table of verbs and options\n"

/* The options that completions offer for a verb. */
#define EACH_OPT(o, verb)                                                                          \
	for (const struct lr_cli_opt *o = lr_cli_opts; o < lr_cli_opts + lr_cli_n_opts; o++)       \
		if (!o->hidden && lr_cli_takes(o, (verb)))
#define EACH_VERB(v)                                                                               \
	for (const struct lr_cli_verb *v = lr_cli_verbs; v < lr_cli_verbs + lr_cli_n_verbs; v++)

static void put_verbs(struct lr_cli_buf *out, const char *separator)
{
	EACH_VERB(v) lr_cli_put(out, "%s%s", v == lr_cli_verbs ? "" : separator, v->name);
}

/* Text with a backslash before each of the characters in `special`. */
static void put_escaped(struct lr_cli_buf *out, const char *text, const char *special)
{
	for (; *text; text++)
		lr_cli_put(out, strchr(special, *text) ? "\\%c" : "%c", *text);
}

/* ---- bash -------------------------------------------------------------------------------- */

static void bash_verb(struct lr_cli_buf *out, uint8_t id, const char *name)
{
	lr_cli_put(out, "    %s)\n        opts=\"", name);
	EACH_OPT(o, id)
	{
		if (o->letter)
			lr_cli_put(out, "-%c ", o->letter);
		lr_cli_put(out, "--%s ", o->name);
	}
	lr_cli_puts(out, "\"\n        case $1 in\n");
	EACH_OPT(o, id)
	{
		if (o->kind == LR_KIND_FLAG || o->kind == LR_KIND_MAYBE)
			continue;
		lr_cli_puts(out, "        ");
		if (o->letter)
			lr_cli_put(out, "-%c|", o->letter);
		lr_cli_put(out, "--%s) ", o->name);
		if (o->kind == LR_KIND_CHOICE)
			lr_cli_put(out, "value=words words=\"%s\" ;;\n", o->choices);
		else if (o->kind == LR_KIND_DIR)
			lr_cli_puts(out, "value=dirs ;;\n");
		else if (o->kind == LR_KIND_FILE)
			lr_cli_puts(out, "value=files ;;\n");
		else
			lr_cli_puts(out, "value=any ;;\n");
	}
	lr_cli_puts(out, "        esac\n        ;;\n");
}

void lr_cli_doc_bash(struct lr_cli_buf *out)
{
	lr_cli_puts(out,
		    "#" GENERATED "# shellcheck shell=bash disable=SC2207\n\n"
		    "# _lean_runtime_table OPTION VERB: sets opts, value and words of the caller.\n"
		    "_lean_runtime_table()\n{\n"
		    "    opts='' value='' words=''\n    case $2 in\n");
	bash_verb(out, LR_VERB_GLOBAL, "''");
	EACH_VERB(v) bash_verb(out, v->id, v->name);
	lr_cli_puts(out, "    esac\n}\n\n_lean_runtime()\n{\n"
			 "    local cur prev verb='' ids=0 i opts value words root=()\n"
			 "    cur=${COMP_WORDS[COMP_CWORD]}\n"
			 "    prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
			 "    # bash splits --option=value at the equals sign.\n"
			 "    if [[ $cur == '=' ]]; then\n"
			 "        cur=''\n"
			 "    elif [[ $prev == '=' ]]; then\n"
			 "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
			 "    fi\n"
			 "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
			 "        if [[ ${COMP_WORDS[i]} == -* ]]; then\n"
			 "            _lean_runtime_table \"${COMP_WORDS[i]}\" \"$verb\"\n"
			 "            [[ ${COMP_WORDS[i]} == --root ]] && root=(--root "
			 "\"${COMP_WORDS[i + 1]}\")\n"
			 "            if [[ -n $value ]]; then\n"
			 "                [[ ${COMP_WORDS[i + 1]} == '=' ]] && ((i++))\n"
			 "                ((i++))\n"
			 "            fi\n"
			 "        elif [[ -z $verb ]]; then\n"
			 "            verb=${COMP_WORDS[i]}\n"
			 "        else\n"
			 "            ((ids++))\n"
			 "        fi\n"
			 "    done\n"
			 "    _lean_runtime_table \"$prev\" \"$verb\"\n"
			 "    case $value in\n"
			 "    words) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")); return ;;\n"
			 "    dirs) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n"
			 "    files) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
			 "    any) return ;;\n"
			 "    esac\n"
			 "    if [[ $cur == -* ]]; then\n"
			 "        COMPREPLY=($(compgen -W \"$opts\" -- \"$cur\"))\n"
			 "        return\n"
			 "    fi\n"
			 "    ((ids == 0)) || return\n"
			 "    case $verb in\n"
			 "    '' | help) COMPREPLY=($(compgen -W \"");
	put_verbs(out, " ");
	lr_cli_puts(out, "\" -- \"$cur\")) ;;\n    ");
	bool first = true;
	EACH_VERB(v)
	{
		if (v->operand != LR_OPERAND_ID)
			continue;
		lr_cli_put(out, "%s%s", first ? "" : "|", v->name);
		first = false;
	}
	lr_cli_puts(out, ")\n        COMPREPLY=($(compgen -W \"$(" LR_CLI_NAME
			 " \"${root[@]}\" list -q 2>/dev/null)\" -- \"$cur\")) ;;\n"
			 "    esac\n}\n\ncomplete -F _lean_runtime " LR_CLI_NAME "\n");
}

/* ---- zsh --------------------------------------------------------------------------------- */

/* Inside single quotes, of which _arguments reads the brackets and colons. */
static void put_zsh(struct lr_cli_buf *out, const char *text)
{
	for (; *text; text++)
		lr_cli_put(out,
			   *text == '\''            ? "'\\%c'"
			   : strchr("[]:\\", *text) ? "\\%c"
						    : "%c",
			   *text);
}

static void zsh_option(struct lr_cli_buf *out, const struct lr_cli_opt *o)
{
	const char *many = o->repeat ? "*" : "", *eq = o->kind == LR_KIND_FLAG    ? ""
						       : o->kind == LR_KIND_MAYBE ? "=-"
										  : "=";

	lr_cli_puts(out, " \\\n        ");
	if (o->letter && o->repeat)
		lr_cli_put(out, "'*'{-%c,--%s%s}'[", o->letter, o->name, eq);
	else if (o->letter)
		lr_cli_put(out, "'(-%c --%s)'{-%c,--%s%s}'[", o->letter, o->name, o->letter,
			   o->name, eq);
	else
		lr_cli_put(out, "'%s--%s%s[", many, o->name, eq);
	put_zsh(out, o->help);
	lr_cli_puts(out, "]");
	if (o->kind != LR_KIND_FLAG) {
		lr_cli_puts(out, o->kind == LR_KIND_MAYBE ? "::" : ":");
		put_zsh(out, o->value);
		lr_cli_puts(out, ":");
	}
	if (o->kind == LR_KIND_CHOICE) {
		lr_cli_puts(out, "(");
		put_zsh(out, o->choices);
		lr_cli_puts(out, ")");
	} else if (o->kind == LR_KIND_DIR)
		lr_cli_puts(out, "_files -/");
	else if (o->kind == LR_KIND_FILE)
		lr_cli_puts(out, "_files");
	lr_cli_puts(out, "'");
}

static void zsh_verb(struct lr_cli_buf *out, const struct lr_cli_verb *v)
{
	lr_cli_put(out, "    %s)\n        _arguments", v->name);
	EACH_OPT(o, v->id) zsh_option(out, o);
	if (v->operand == LR_OPERAND_ID)
		lr_cli_puts(out, " \\\n        '1:container:_lean_runtime_ids'");
	else if (v->operand == LR_OPERAND_NEW_ID)
		lr_cli_puts(out, " \\\n        '1:new container:'");
	else if (v->operand == LR_OPERAND_VERB)
		lr_cli_puts(out, " \\\n        '1:command:_lean_runtime_verbs'");
	if (v->id == LR_VERB_KILL)
		lr_cli_puts(out, " \\\n        '2:signal:_signals'");
	else if (v->command)
		lr_cli_puts(out, " \\\n        '*::argument:_default'");
	lr_cli_puts(out, "\n        ;;\n");
}

void lr_cli_doc_zsh(struct lr_cli_buf *out)
{
	lr_cli_puts(out, "#compdef " LR_CLI_NAME "\n#" GENERATED "\n_lean_runtime_verbs() {\n"
			 "    local -a verbs\n    verbs=(");
	EACH_VERB(v)
	{
		lr_cli_put(out, "\n        '%s:", v->name);
		put_zsh(out, v->summary);
		lr_cli_puts(out, "'");
	}
	lr_cli_puts(out,
		    "\n    )\n    _describe command verbs\n}\n\n_lean_runtime_ids() {\n"
		    "    local -a ids\n"
		    "    ids=(${(f)\"$(_call_program ids " LR_CLI_NAME
		    " ${opt_args[--root]:+--root ${opt_args[--root]}} list -q 2>/dev/null)\"})\n"
		    "    _describe container ids\n}\n\n_lean_runtime() {\n"
		    "    local curcontext=$curcontext state line\n    typeset -A opt_args\n"
		    "    _arguments -C");
	EACH_OPT(o, LR_VERB_GLOBAL) zsh_option(out, o);
	lr_cli_puts(out, " \\\n        '1: :_lean_runtime_verbs' '*:: :->rest'\n"
			 "    [[ $state == rest ]] || return\n    case $words[1] in\n");
	EACH_VERB(v) zsh_verb(out, v);
	lr_cli_puts(out, "    esac\n}\n\n_lean_runtime \"$@\"\n");
}

/* ---- fish -------------------------------------------------------------------------------- */

static void fish_option(struct lr_cli_buf *out, const struct lr_cli_opt *o, const char *verb)
{
	lr_cli_puts(out, "complete -c " LR_CLI_NAME);
	if (verb)
		lr_cli_put(out, " -n '__fish_seen_subcommand_from %s'", verb);
	else
		lr_cli_puts(out, " -n __fish_use_subcommand");
	if (o->letter)
		lr_cli_put(out, " -s %c", o->letter);
	if (o->letter2)
		lr_cli_put(out, " -s %c", o->letter2);
	lr_cli_put(out, " -l %s", o->name);
	if (o->kind == LR_KIND_CHOICE)
		lr_cli_put(out, " -x -a '%s'", o->choices);
	else if (o->kind == LR_KIND_DIR)
		lr_cli_puts(out, " -x -a '(__fish_complete_directories)'");
	else if (o->kind == LR_KIND_FILE)
		lr_cli_puts(out, " -r -F");
	else if (o->kind != LR_KIND_FLAG && o->kind != LR_KIND_MAYBE)
		lr_cli_puts(out, " -x");
	lr_cli_puts(out, " -d '");
	put_escaped(out, o->help, "'\\");
	lr_cli_puts(out, "'\n");
}

void lr_cli_doc_fish(struct lr_cli_buf *out)
{
	lr_cli_puts(out, "#" GENERATED "complete -c " LR_CLI_NAME " -f\n");
	EACH_VERB(v)
	{
		lr_cli_put(out, "complete -c " LR_CLI_NAME " -n __fish_use_subcommand -a %s -d '",
			   v->name);
		put_escaped(out, v->summary, "'\\");
		lr_cli_puts(out, "'\n");
		if (v->operand == LR_OPERAND_ID)
			lr_cli_put(out,
				   "complete -c " LR_CLI_NAME
				   " -n '__fish_seen_subcommand_from %s' -a '(" LR_CLI_NAME
				   " list -q 2>/dev/null)'\n",
				   v->name);
	}
	lr_cli_puts(out, "complete -c " LR_CLI_NAME " -n '__fish_seen_subcommand_from help' -a '");
	put_verbs(out, " ");
	lr_cli_puts(out, "'\n");
	EACH_OPT(o, LR_VERB_GLOBAL) fish_option(out, o, NULL);
	EACH_VERB(v) EACH_OPT(o, v->id) fish_option(out, o, v->name);
}
