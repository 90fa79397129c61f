// SPDX-License-Identifier: GPL-2.0
/* One-time tokens: who shows one may connect to its seed, once. */
#include <crypto/algapi.h>
#include <linux/jiffies.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "internal.h"

#define LEAN_TOKENS_MAX 1024 /* of one seed */
#define LEAN_TOKEN_SECONDS 30
#define LEAN_TOKEN_SECONDS_MAX 3600

struct lean_token {
	struct list_head link;
	struct lean_seed *seed;
	unsigned long expires;
	u8 bytes[LEAN_SEED_TOKEN_SIZE];
};

static LIST_HEAD(tokens);
static DEFINE_SPINLOCK(tokens_lock);

static void token_free(struct lean_token *token)
{
	list_del(&token->link);
	token->seed->tokens--;
	kfree_sensitive(token);
}

/* With the lock held. */
static void drop_old(struct lean_seed *all_of)
{
	struct lean_token *token, *next;

	list_for_each_entry_safe(token, next, &tokens, link)
		if (token->seed == all_of || time_after(jiffies, token->expires))
			token_free(token);
}

void lean_tokens_drop(struct lean_seed *seed)
{
	spin_lock(&tokens_lock);
	drop_old(seed);
	spin_unlock(&tokens_lock);
}

int lean_token_make(struct lean_seed *seed, void __user *user, size_t size)
{
	struct lean_seed_token arg;
	struct lean_token *token;
	int err = lean_copy_in(&arg, sizeof(arg), user, size);

	if (err)
		return err;
	if (arg.seconds > LEAN_TOKEN_SECONDS_MAX || arg.reserved)
		return -EINVAL;
	token = kzalloc(sizeof(*token), GFP_KERNEL_ACCOUNT);
	if (!token)
		return -ENOMEM;
	token->seed = seed;
	token->expires = jiffies + HZ * (arg.seconds ? arg.seconds : LEAN_TOKEN_SECONDS);
	get_random_bytes(token->bytes, sizeof(token->bytes));
	memcpy(arg.token, token->bytes, sizeof(arg.token));
	spin_lock(&tokens_lock);
	drop_old(NULL);
	if (seed->tokens >= LEAN_TOKENS_MAX) {
		err = -EMFILE;
	} else {
		list_add(&token->link, &tokens);
		seed->tokens++;
	}
	spin_unlock(&tokens_lock);
	if (err)
		kfree_sensitive(token);
	else
		err = lean_copy_out(user, size, &arg, sizeof(arg));
	memzero_explicit(&arg, sizeof(arg));
	return err;
}

/* The seed that a token opens, with a reference, or NULL. The token is used up. */
struct lean_seed *lean_token_take(const u8 *bytes)
{
	struct lean_token *token, *next;
	struct lean_seed *seed = NULL;

	spin_lock(&tokens_lock);
	drop_old(NULL);
	list_for_each_entry_safe(token, next, &tokens, link) {
		if (crypto_memneq(token->bytes, bytes, sizeof(token->bytes)))
			continue;
		seed = token->seed;
		/* Tokens are dropped before their seed is put for the last time. */
		kref_get(&seed->ref);
		token_free(token);
		break;
	}
	spin_unlock(&tokens_lock);
	return seed;
}
