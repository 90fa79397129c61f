/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see tls.h; also the other primitives that we have of OpenSSL. */
#include "src/forkd/tls.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/forkd/link.h"

struct tls {
	SSL_CTX *context;
	SSL *ssl;
	uint8_t id[LR_WIRE_ID], secret[LR_WIRE_SECRET];
};

/* The session that the secret stands for. */
static SSL_SESSION *session_of(SSL *ssl, const struct tls *t)
{
	static const unsigned char suite[] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */
	SSL_SESSION *s = SSL_SESSION_new();

	if (s && SSL_SESSION_set1_master_key(s, t->secret, sizeof(t->secret)) == 1 &&
	    SSL_SESSION_set_cipher(s, SSL_CIPHER_find(ssl, suite)) == 1 &&
	    SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION) == 1)
		return s;
	SSL_SESSION_free(s);
	return NULL;
}

static int client_psk(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_length,
		      SSL_SESSION **ret)
{
	const struct tls *t = SSL_get_app_data(ssl);

	*ret = NULL;
	if (md && EVP_MD_get_type(md) != NID_sha256)
		return 1;
	*id = t->id;
	*id_length = sizeof(t->id);
	*ret = session_of(ssl, t);
	return *ret != NULL;
}

/* One seed a connection: another one's identity finds nothing. */
static int server_psk(SSL *ssl, const unsigned char *id, size_t id_length, SSL_SESSION **ret)
{
	const struct tls *t = SSL_get_app_data(ssl);

	*ret = NULL;
	if (id_length != sizeof(t->id) || memcmp(id, t->id, sizeof(t->id)) != 0)
		return 1;
	*ret = session_of(ssl, t);
	return *ret != NULL;
}

static struct tls *new_tls(int fd, const uint8_t id[LR_WIRE_ID],
			   const uint8_t secret[LR_WIRE_SECRET], bool client)
{
	struct tls *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	memcpy(t->id, id, sizeof(t->id));
	memcpy(t->secret, secret, sizeof(t->secret));
	t->context = SSL_CTX_new(client ? TLS_client_method() : TLS_server_method());
	if (t->context) {
		SSL_CTX_set_min_proto_version(t->context, TLS1_3_VERSION);
		SSL_CTX_set_ciphersuites(t->context, "TLS_AES_128_GCM_SHA256");
		SSL_CTX_set_num_tickets(t->context, 0);
		SSL_CTX_set_session_cache_mode(t->context, SSL_SESS_CACHE_OFF);
		/* There are no certificates: one that a server sends is nobody's. */
		SSL_CTX_set_verify(t->context, client ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
		if (client)
			SSL_CTX_set_psk_use_session_callback(t->context, client_psk);
		else
			SSL_CTX_set_psk_find_session_callback(t->context, server_psk);
		t->ssl = SSL_new(t->context);
	}
	if (!t->ssl || SSL_set_fd(t->ssl, fd) != 1) {
		tls_free(t);
		return NULL;
	}
	SSL_set_app_data(t->ssl, t);
	SSL_set_mode(t->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	return t;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	SSL_CTX_free(t->context);
	OPENSSL_cleanse(t, sizeof(*t));
	free(t);
}

/* What OpenSSL's -1 was about. */
static int meaning(const struct tls *t, int r, short *events)
{
	switch (SSL_get_error(t->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		*events = POLLIN;
		return -EAGAIN;
	case SSL_ERROR_WANT_WRITE:
		*events = POLLOUT;
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
	case SSL_ERROR_SYSCALL:
		return -EPIPE;
	default:
		return -EIO;
	}
}

static int shake(struct tls *t, int fd, int64_t until, bool client)
{
	for (;;) {
		short events = 0;
		ERR_clear_error();
		int r = client ? SSL_connect(t->ssl) : SSL_accept(t->ssl);
		if (r == 1) /* nothing but the secret will do */
			return SSL_session_reused(t->ssl) ? 0 : -EACCES;
		r = meaning(t, r, &events);
		if (r != -EAGAIN)
			return r == -EIO ? -EACCES : r;
		int64_t left = until - lr_now_ms();
		struct pollfd p = {.fd = fd, .events = events};
		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)(left > 60000 ? 60000 : left)) < 0 && errno != EINTR)
			return -errno;
	}
}

static int begin(int fd, const uint8_t id[LR_WIRE_ID], const uint8_t secret[LR_WIRE_SECRET],
		 int64_t until, bool client, struct tls **ret)
{
	struct tls *t = new_tls(fd, id, secret, client);

	if (!t)
		return -ENOMEM;
	int r = shake(t, fd, until, client);
	if (r < 0) {
		tls_free(t);
		return r;
	}
	OPENSSL_cleanse(t->secret, sizeof(t->secret));
	*ret = t;
	return 0;
}

int tls_connect(int fd, const uint8_t id[LR_WIRE_ID], const uint8_t secret[LR_WIRE_SECRET],
		int64_t until, struct tls **ret)
{
	return begin(fd, id, secret, until, true, ret);
}

int tls_accept(int fd, const uint8_t id[LR_WIRE_ID], const uint8_t secret[LR_WIRE_SECRET],
	       int64_t until, struct tls **ret)
{
	return begin(fd, id, secret, until, false, ret);
}

ssize_t tls_read(struct tls *t, void *to, size_t n, short *events)
{
	size_t done = 0;

	ERR_clear_error();
	int r = SSL_read_ex(t->ssl, to, n, &done);
	return r == 1 ? (ssize_t)done : meaning(t, r, events);
}

ssize_t tls_write(struct tls *t, const void *from, size_t n, short *events)
{
	size_t done = 0;

	ERR_clear_error();
	int r = SSL_write_ex(t->ssl, from, n, &done);
	return r == 1 ? (ssize_t)done : meaning(t, r, events);
}

/* ---- not of TLS --------------------------------------------------------------------------- */

int link_proof(const uint8_t secret[LR_WIRE_SECRET], const uint8_t challenge[LR_WIRE_PROOF],
	       const uint8_t id[LR_WIRE_ID], uint8_t ret[LR_WIRE_PROOF])
{
	static const char label[] = "lean-seed 1 client";
	uint8_t text[sizeof(label) - 1 + LR_WIRE_PROOF + LR_WIRE_ID];
	unsigned n = LR_WIRE_PROOF;

	memcpy(text, label, sizeof(label) - 1);
	memcpy(text + sizeof(label) - 1, challenge, LR_WIRE_PROOF);
	memcpy(text + sizeof(label) - 1 + LR_WIRE_PROOF, id, LR_WIRE_ID);
	return HMAC(EVP_sha256(), secret, LR_WIRE_SECRET, text, sizeof(text), ret, &n) ? 0 : -EIO;
}

int link_random(void *to, size_t n)
{
	return RAND_bytes(to, (int)n) == 1 ? 0 : -EIO;
}

bool link_same(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}

void link_forget(void *secret, size_t n)
{
	OPENSSL_cleanse(secret, n);
}
