/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libocispec: what the tables cannot say about the shape of a document (that a path is absolute,
 * a version is one that we know). Each returns 0 or -EINVAL with the JSON path in *err. `what` is
 * the document, `prefix` what paths in it begin with: "process." within config.json, else "".
 */
#ifndef OCI_VALIDATE_H
#define OCI_VALIDATE_H

#include "libocispec/config.h"
#include "src/base/err.h"

int oci_validate_config(const struct oci_config *c, struct lr_err *err) LR_MUST_CHECK;
int oci_validate_process(const struct oci_process *p, const char *what, const char *prefix,
			 struct lr_err *err) LR_MUST_CHECK;

/* True for `major.minor.patch[-pre][+build]` as SemVer 2.0.0 has it; *major is set. */
bool oci_is_semver(const char *s, unsigned *major);

#endif
