/* SPDX-License-Identifier: Apache-2.0 */
/* The container state as the state command prints it. */
#define DOCUMENT               state
#define ENCODE(object, a, len) oci_state_encode(object, false, a, len)
#include "tests/fuzz/fuzz_document.h"
