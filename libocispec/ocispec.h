/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libocispec: bytes to structures and back.
 *
 * Every decoder takes the whole text (it needs no terminating NUL and is not kept), allocates the
 * result in the caller's arena, and fails closed: wrong types, numbers out of range, duplicate
 * keys, embedded NULs, too deep, too large, trailing bytes and invalid UTF-8 are errors that
 * carry the JSON path ("linux.resources.memory.limit") and what was expected. Unknown properties
 * are ignored, as the specification asks. Decoders check shape only, not meaning: whether a
 * namespace type or a mount option exists is for the room that owns it.
 *
 * Encoders return a NUL-terminated text in the arena (compact; *len, if given, without the NUL).
 */
#ifndef OCI_OCISPEC_H
#define OCI_OCISPEC_H

#include "libocispec/config.h"
#include "libocispec/features.h"
#include "libocispec/state.h"
#include "src/base/arena.h"
#include "src/base/err.h"

#define OCI_VERSION     "1.3.0"     /* what `spec` and `state` say */
#define OCI_VERSION_MIN "1.0.0"     /* what `features` says */
#define OCI_CONFIG_MAX  (16u << 20) /* bytes; larger files are refused before parsing */

/* The value of a key; NULL: not there. `m` may be NULL. */
const char *oci_map_get(const struct oci_map *m, const char *key);

/* 0 or -errno (-EINVAL, -EFBIG, -ENOMEM) with *err filled. *ret is untouched on failure. */
int oci_config_decode(const char *text, size_t len, struct lr_arena *arena,
		      const struct oci_config **ret, struct lr_err *err) LR_MUST_CHECK;
int oci_process_decode(const char *text, size_t len, struct lr_arena *arena,
		       const struct oci_process **ret, struct lr_err *err) LR_MUST_CHECK;
int oci_resources_decode(const char *text, size_t len, struct lr_arena *arena,
			 const struct oci_resources **ret, struct lr_err *err) LR_MUST_CHECK;
/* The mounts of a document: a list of mounts, or an object (such as config.json) that has one. */
int oci_mounts_decode(const char *text, size_t len, struct lr_arena *arena, struct oci_mounts *ret,
		      struct lr_err *err) LR_MUST_CHECK;
int oci_state_decode(const char *text, size_t len, struct lr_arena *arena,
		     const struct oci_state **ret, struct lr_err *err) LR_MUST_CHECK;
int oci_features_decode(const char *text, size_t len, struct lr_arena *arena,
			const struct oci_features **ret, struct lr_err *err) LR_MUST_CHECK;

/* NULL only when the arena is out of memory. `indent`: pretty-printed by two spaces. */
char *oci_config_encode(const struct oci_config *c, bool indent, struct lr_arena *arena,
			size_t *len);
char *oci_process_encode(const struct oci_process *p, struct lr_arena *arena, size_t *len);
char *oci_state_encode(const struct oci_state *s, bool indent, struct lr_arena *arena, size_t *len);
char *oci_container_process_state_encode(const struct oci_container_process_state *s,
					 struct lr_arena *arena, size_t *len);
char *oci_features_encode(const struct oci_features *f, bool indent, struct lr_arena *arena,
			  size_t *len);

/*
 * Reads a whole file into the arena (NUL-terminated beyond *len), bounded by OCI_CONFIG_MAX.
 * dirfd and path as for openat(2). -EFBIG when larger; anything but a regular file is refused.
 */
int oci_read_file(int dirfd, const char *path, struct lr_arena *arena, char **text, size_t *len,
		  struct lr_err *err) LR_MUST_CHECK;
/* The same of an open file; `path` is for messages. */
int oci_read_fd(int fd, const char *path, struct lr_arena *arena, char **text, size_t *len,
		struct lr_err *err) LR_MUST_CHECK;

/* The same of what a user names: it may be a pipe or a FIFO as well, or "-", standard input. */
int oci_read_input(const char *path, struct lr_arena *arena, char **text, size_t *len,
		   struct lr_err *err) LR_MUST_CHECK;

#endif
